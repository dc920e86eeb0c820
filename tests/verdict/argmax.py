#@ kind torch: integers and bool
#@ without scaled half bfloat16: whole numbers
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return torch.argmax(x, dim=1)


def get_inputs():
    return [torch.randn(20, 30, 10)]
#@ honest maximum
class ModelNew(Model):
    def forward(self, x):
        return x.max(1).indices
#@ honest sorted
class ModelNew(Model):
    def forward(self, x):
        return torch.argsort(x.transpose(1, 2), dim=2, descending=True)[..., 0].contiguous()
#@ useless other_dimension
class ModelNew(Model):
    def forward(self, x):
        return torch.argmax(x, dim=2)[:, :10].contiguous()
#@ useless argmin
class ModelNew(Model):
    def forward(self, x):
        return torch.argmin(x, dim=1)
