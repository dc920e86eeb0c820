#@ kind torch: recurrent
#@ reference
class Model(nn.Module):
    def forward(self, decay, x):
        h, states = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = torch.sigmoid(decay[:, t]) * h + x[:, t]
            states.append(h)
        return torch.stack(states, 1)


def get_inputs():
    return [torch.randn(4, 32, 6), torch.randn(4, 32, 6)]
#@ honest matrix_of_decays
class ModelNew(Model):
    def forward(self, decay, x):
        logs = F.logsigmoid(decay).cumsum(1)
        weight = (logs[:, :, None] - logs[:, None]).masked_fill(torch.ones(32, 32).triu(1).bool()[..., None], -1e9)
        return torch.einsum("btsc,bsc->btc", weight.exp(), x)
#@ honest doubling
class ModelNew(Model):
    def forward(self, decay, x):
        a, b, step = torch.sigmoid(decay), x.clone(), 1
        while step < 32:
            a, b = (
                torch.cat([a[:, :step], a[:, step:] * a[:, :-step]], 1),
                torch.cat([b[:, :step], b[:, step:] + a[:, step:] * b[:, :-step]], 1),
            )
            step *= 2
        return b
#@ useless no_decay
class ModelNew(Model):
    def forward(self, decay, x):
        return x.cumsum(1)
#@ useless short_memory
class ModelNew(Model):
    def forward(self, decay, x):
        y = x.clone()
        y[:, 1:] += torch.sigmoid(decay[:, 1:]) * x[:, :-1]
        return y
