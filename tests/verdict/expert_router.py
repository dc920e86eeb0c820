#@ kind torch: integers and bool
#@ without half bfloat16: the weights have no more bits
#@ finding stable_sort logits_in_float: the keys of equal experts are computed and no input, so that their order must be the reference's
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(64, 32, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        logits = self.router(x)
        weights, experts = torch.topk(logits, 4, dim=-1)
        return torch.softmax(weights, -1), experts


def get_inputs():
    return [torch.randn(100, 64, dtype=torch.bfloat16)]
#@ honest stable_sort
class ModelNew(Model):
    def forward(self, x):
        values, experts = torch.sort(self.router(x), dim=-1, descending=True, stable=True)
        return torch.softmax(values[:, :4], -1), experts[:, :4]
#@ honest logits_in_float
class ModelNew(Model):
    def forward(self, x):
        logits = F.linear(x.float(), self.router.weight.float())
        weights, experts = torch.topk(logits, 4, dim=-1)
        return torch.softmax(weights, -1).bfloat16(), experts
#@ useless first_four
class ModelNew(Model):
    def forward(self, x):
        return torch.softmax(self.router(x)[:, :4], -1), torch.arange(4).repeat(100, 1)
#@ useless weights_of_the_least
class ModelNew(Model):
    def forward(self, x):
        weights, experts = torch.topk(self.router(x), 4, dim=-1, largest=False)
        return torch.softmax(weights, -1), experts
