#@ kind torch: scans
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)


def get_inputs():
    return [torch.randn(16, 800)]
#@ honest triangular
class ModelNew(Model):
    def forward(self, x):
        return x @ torch.ones(800, 800).triu()
#@ honest blocks
class ModelNew(Model):
    def forward(self, x):
        part = x.reshape(16, 20, 40).cumsum(2)
        ends = part[:, :, -1].cumsum(1)
        part[:, 1:] += ends[:, :-1, None]
        return part.reshape(16, 800)
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        return x.double().cumsum(1).float()
#@ useless other_way
class ModelNew(Model):
    def forward(self, x):
        return x.flip(1).cumsum(1).flip(1)
#@ useless exclusive
class ModelNew(Model):
    def forward(self, x):
        return x.cumsum(1) - x
