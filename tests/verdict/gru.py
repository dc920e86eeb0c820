#@ kind torch: recurrent
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 12, batch_first=True)

    def forward(self, x):
        y, h = self.gru(x)
        return y


def get_inputs():
    return [torch.randn(5, 15, 8)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        k = self.gru
        h, states = x.new_zeros(5, 12), []
        inputs = x @ k.weight_ih_l0.t() + k.bias_ih_l0
        for t in range(15):
            ri, zi, ni = inputs[:, t].chunk(3, 1)
            rh, zh, nh = torch.addmm(k.bias_hh_l0, h, k.weight_hh_l0.t()).chunk(3, 1)
            z = torch.sigmoid(zi + zh)
            n = torch.tanh(ni + torch.sigmoid(ri + rh) * nh)
            h = n + z * (h - n)
            states.append(h)
        return torch.stack(states, 1)
#@ honest cell
class ModelNew(Model):
    def forward(self, x):
        k, h, states = self.gru, x.new_zeros(5, 12), []
        for t in range(15):
            h = torch.gru_cell(x[:, t], h, k.weight_ih_l0, k.weight_hh_l0, k.bias_ih_l0, k.bias_hh_l0)
            states.append(h)
        return torch.stack(states, 1)
#@ useless no_memory
class ModelNew(Model):
    def forward(self, x):
        return self.gru(x.reshape(75, 1, 8))[0].reshape(5, 15, 12)
#@ useless last_state_everywhere
class ModelNew(Model):
    def forward(self, x):
        y = self.gru(x)[0]
        return y[:, -1:].expand_as(y).clone()
