#@ kind torch: double precision
#@ reference
class Model(nn.Module):
    def forward(self, a, b):
        return torch.linalg.solve(a @ a.transpose(-1, -2) + 10 * torch.eye(12, dtype=a.dtype), b)


def get_inputs():
    return [torch.randn(5, 12, 12, dtype=torch.float64), torch.randn(5, 12, 3, dtype=torch.float64)]
#@ honest cholesky
class ModelNew(Model):
    def forward(self, a, b):
        s = torch.baddbmm(10 * torch.eye(12, dtype=a.dtype).expand(5, 12, 12), a, a.mT)
        return torch.cholesky_solve(b, torch.linalg.cholesky(s))
#@ honest inverse
class ModelNew(Model):
    def forward(self, a, b):
        return torch.linalg.inv(a @ a.mT + 10 * torch.eye(12, dtype=a.dtype)) @ b
#@ useless single
class ModelNew(Model):
    def forward(self, a, b):
        a, b = a.float(), b.float()
        return torch.linalg.solve(a @ a.mT + 10 * torch.eye(12), b).double()
#@ useless diagonal_only
class ModelNew(Model):
    def forward(self, a, b):
        return b / ((a * a).sum(-1) + 10)[..., None]
