#@ kind torch: recurrent
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(12, 16)

    def forward(self, x, h, c):
        return self.cell(x, (h, c))


def get_inputs():
    return [torch.randn(10, 12), torch.randn(10, 16), torch.randn(10, 16)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x, h, c):
        k = self.cell
        gates = x @ k.weight_ih.t() + h @ k.weight_hh.t() + k.bias_ih + k.bias_hh
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
#@ honest one_product
class ModelNew(Model):
    def forward(self, x, h, c):
        k = self.cell
        w = torch.cat([k.weight_ih, k.weight_hh], 1)
        i, f, g, o = torch.addmm(k.bias_ih + k.bias_hh, torch.cat([x, h], 1), w.t()).chunk(4, 1)
        c = torch.addcmul(f.sigmoid() * c, i.sigmoid(), g.tanh())
        return o.sigmoid() * c.tanh(), c
#@ useless gates_exchanged
class ModelNew(Model):
    def forward(self, x, h, c):
        k = self.cell
        f, i, g, o = (x @ k.weight_ih.t() + h @ k.weight_hh.t() + k.bias_ih + k.bias_hh).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c
#@ useless state_ignored
class ModelNew(Model):
    def forward(self, x, h, c):
        return self.cell(x)
#@ useless outputs_exchanged
class ModelNew(Model):
    def forward(self, x, h, c):
        h, c = self.cell(x, (h, c))
        return c, h
