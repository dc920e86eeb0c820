#@ kind torch: layers
#@ reference
class Model(nn.Module):
    def forward(self, a, b):
        return torch.triu(torch.matmul(torch.triu(a), torch.triu(b)))


def get_inputs():
    return [torch.randn(48, 48), torch.randn(48, 48)]
#@ honest rows
class ModelNew(Model):
    def forward(self, a, b):
        a, b = a.triu(), b.triu()
        return torch.stack([a[i, i:] @ b[i:] for i in range(48)])
#@ honest einsum
class ModelNew(Model):
    def forward(self, a, b):
        return torch.einsum("ik,kj->ij", a.triu(), b.triu()).triu()
#@ useless full
class ModelNew(Model):
    def forward(self, a, b):
        return a @ b
#@ useless upper_part_of_the_full
class ModelNew(Model):
    def forward(self, a, b):
        return torch.triu(a @ b)
