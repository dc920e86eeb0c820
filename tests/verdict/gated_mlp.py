#@ kind torch: layers
#@ reference
class Model(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.gate = nn.Linear(n, m, bias=False)
        self.up = nn.Linear(n, m, bias=False)
        self.down = nn.Linear(m, n, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs():
    return [torch.randn(4, 10, 32)]


def get_init_inputs():
    return [32, 64]
#@ honest one_product
class ModelNew(Model):
    def forward(self, x):
        both = x @ torch.cat([self.gate.weight, self.up.weight]).t()
        g, u = both.chunk(2, -1)
        return torch.matmul(g * torch.sigmoid(g) * u, self.down.weight.t())
#@ honest einsum
class ModelNew(Model):
    def forward(self, x):
        g = torch.einsum("bti,oi->bto", x, self.gate.weight)
        u = torch.einsum("bti,oi->bto", x, self.up.weight)
        return torch.einsum("bto,io->bti", u * (g / (1 + torch.exp(-g))), self.down.weight)
#@ useless gate_without_product
class ModelNew(Model):
    def forward(self, x):
        return self.down(F.silu(self.gate(x)))
#@ useless sigmoid_in_place_of_silu
class ModelNew(Model):
    def forward(self, x):
        return self.down(torch.sigmoid(self.gate(x)) * self.up(x))
