#@ kind torch: normalisation
#@ reference
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(8, 12, 64)]


def get_init_inputs():
    return [64]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        d = x - x.mean(-1, keepdim=True)
        return d * torch.rsqrt(d.pow(2).mean(-1, keepdim=True) + 1e-5) * self.norm.weight + self.norm.bias
#@ honest one_pass
class ModelNew(Model):
    def forward(self, x):
        m = x.mean(-1, keepdim=True)
        v = (x * x).mean(-1, keepdim=True) - m * m
        return (x - m) / torch.sqrt(v + 1e-5) * self.norm.weight + self.norm.bias
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        return F.layer_norm(x.double(), (64,)).float() * self.norm.weight + self.norm.bias
#@ useless unbiased_variance
class ModelNew(Model):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True) + 1e-5)
#@ useless input
class ModelNew(Model):
    def forward(self, x):
        return x.clone()
#@ useless rms_norm
class ModelNew(Model):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
