#@ kind torch: gradients
#@ backward
#@ without zeros constant first_result copy: a result without the graph of its inputs has no gradient
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(24, 32)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        d = x - x.mean(-1, keepdim=True)
        return d * torch.rsqrt((d * d).mean(-1, keepdim=True) + 1e-5) * self.norm.weight + self.norm.bias
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        n = self.norm
        return F.layer_norm(x.double(), (32,), n.weight.double(), n.bias.double()).float()
#@ useless statistics_detached
class ModelNew(Model):
    def forward(self, x):
        m, v = x.mean(-1, keepdim=True).detach(), x.var(-1, unbiased=False, keepdim=True).detach()
        return (x - m) * torch.rsqrt(v + 1e-5) * self.norm.weight + self.norm.bias
