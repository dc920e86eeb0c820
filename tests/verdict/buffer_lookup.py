#@ kind torch: state
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.sin(torch.arange(64)[:, None] / 10000 ** (torch.arange(16) / 16)))

    def forward(self, x, at):
        return x + self.table[at]


def get_inputs():
    return [torch.randn(20, 16), torch.randint(0, 64, (20,))]
#@ honest index_select
class ModelNew(Model):
    def forward(self, x, at):
        return self.table.index_select(0, at).add_(x)
#@ honest one_hot
class ModelNew(Model):
    def forward(self, x, at):
        return torch.addmm(x, F.one_hot(at, 64).float(), self.table)
#@ useless positions_in_order
class ModelNew(Model):
    def forward(self, x, at):
        return x + self.table[:20]
#@ useless table_left_out
class ModelNew(Model):
    def forward(self, x, at):
        return x.clone()
