#@ kind torch: layers
#@ reference
class Model(nn.Module):
    def __init__(self, n, m, factor):
        super().__init__()
        self.linear = nn.Linear(n, m)
        self.factor = factor

    def forward(self, x):
        x = self.linear(x)
        x = x * torch.sigmoid(x)
        return x * self.factor


def get_inputs():
    return [torch.randn(16, 256)]


def get_init_inputs():
    return [256, 64, 2.0]
#@ honest in_place
class ModelNew(Model):
    def forward(self, x):
        return F.silu(self.linear(x), inplace=True).mul_(self.factor)
#@ honest chunks_of_k
class ModelNew(Model):
    def forward(self, x):
        y = self.linear.bias.expand(x.shape[0], -1).clone()
        for at in range(0, 256, 64):
            y += x[:, at : at + 64] @ self.linear.weight[:, at : at + 64].t()
        return self.factor * y / (1 + (-y).exp())
#@ useless no_factor
class ModelNew(Model):
    def forward(self, x):
        return F.silu(self.linear(x))
#@ useless half_inside
class ModelNew(Model):
    def forward(self, x):
        y = F.linear(x.half(), self.linear.weight.half(), self.linear.bias.half())
        return (F.silu(y) * self.factor).float()
