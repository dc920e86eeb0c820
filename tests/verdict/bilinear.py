#@ kind torch: layers
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Bilinear(10, 12, 8)

    def forward(self, a, b):
        return self.layer(a, b)


def get_inputs():
    return [torch.randn(20, 10), torch.randn(20, 12)]
#@ honest einsum
class ModelNew(Model):
    def forward(self, a, b):
        return torch.einsum("ni,oij,nj->no", a, self.layer.weight, b) + self.layer.bias
#@ honest two_products
class ModelNew(Model):
    def forward(self, a, b):
        left = torch.einsum("ni,oij->noj", a, self.layer.weight)
        return (left * b[:, None]).sum(-1) + self.layer.bias
#@ useless no_bias
class ModelNew(Model):
    def forward(self, a, b):
        return torch.einsum("ni,oij,nj->no", a, self.layer.weight, b)
