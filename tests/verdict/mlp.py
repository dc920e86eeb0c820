#@ kind torch: layers
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(32, 96)
        self.down = nn.Linear(96, 32)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


def get_inputs():
    return [torch.randn(24, 32)]
#@ honest erf
class ModelNew(Model):
    def forward(self, x):
        h = torch.addmm(self.up.bias, x, self.up.weight.t())
        h = h * 0.5 * (1 + torch.erf(h * 0.7071067811865476))
        return torch.addmm(x + self.down.bias, h, self.down.weight.t())
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        h = F.gelu(F.linear(x.double(), self.up.weight.double(), self.up.bias.double()))
        return (x + F.linear(h, self.down.weight.double(), self.down.bias.double())).float()
#@ honest in_halves
class ModelNew(Model):
    def forward(self, x):
        h = F.gelu(self.up(x))
        left, right = h.split(48, 1)
        w = self.down.weight
        return left @ w[:, :48].t() + right @ w[:, 48:].t() + self.down.bias + x
#@ useless gelu_by_tanh
class ModelNew(Model):
    def forward(self, x):
        return x + self.down(F.gelu(self.up(x), approximate="tanh"))
#@ useless no_skip
class ModelNew(Model):
    def forward(self, x):
        return self.down(F.gelu(self.up(x)))
#@ useless skip_only
class ModelNew(Model):
    def forward(self, x):
        return x.clone()
#@ useless bfloat16_inside
class ModelNew(Model):
    def forward(self, x):
        h = F.gelu(F.linear(x.bfloat16(), self.up.weight.bfloat16(), self.up.bias.bfloat16()))
        return x + F.linear(h, self.down.weight.bfloat16(), self.down.bias.bfloat16()).float()
