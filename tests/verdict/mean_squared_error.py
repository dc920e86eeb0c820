#@ kind torch: losses
#@ reference
class Model(nn.Module):
    def forward(self, a, b):
        return torch.mean((a - b) ** 2)


def get_inputs():
    return [torch.randn(64, 100), torch.randn(64, 100)]
#@ honest library
class ModelNew(Model):
    def forward(self, a, b):
        return F.mse_loss(a, b)
#@ honest norm
class ModelNew(Model):
    def forward(self, a, b):
        return torch.linalg.vector_norm(a - b) ** 2 / a.numel()
#@ honest rows_first
class ModelNew(Model):
    def forward(self, a, b):
        d = (a - b).t()
        return (d * d).sum(1).sum() / 6400
#@ useless expected_value
class ModelNew(Model):
    def forward(self, a, b):
        return torch.tensor(2.0)
#@ useless first_rows
class ModelNew(Model):
    def forward(self, a, b):
        return F.mse_loss(a[:32], b[:32])
#@ useless mean_magnitude
class ModelNew(Model):
    def forward(self, a, b):
        return F.l1_loss(a, b)
