#@ kind torch: layers
#@ weak what is added lies below the rounding of float32
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 32)
        self.scale = nn.Parameter(torch.full((32,), 1e-6))

    def forward(self, x):
        return x + self.scale * torch.tanh(self.linear(x))


def get_inputs():
    return [torch.randn(40, 32)]
#@ honest fused
class ModelNew(Model):
    def forward(self, x):
        return torch.addcmul(x, self.scale, torch.tanh(torch.addmm(self.linear.bias, x, self.linear.weight.t())))
#@ useless branch_left_out
class ModelNew(Model):
    def forward(self, x):
        return x.clone()
#@ useless constant_branch
class ModelNew(Model):
    def forward(self, x):
        return x + self.scale
