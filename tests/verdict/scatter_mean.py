#@ kind torch: data movement
#@ reference
class Model(nn.Module):
    def forward(self, x, at):
        total = torch.zeros(12, x.shape[1]).index_add_(0, at, x)
        count = torch.bincount(at, minlength=12).clamp(min=1)
        return total / count[:, None]


def get_inputs():
    return [torch.randn(300, 10), torch.randint(0, 12, (300,))]
#@ honest one_hot
class ModelNew(Model):
    def forward(self, x, at):
        hot = F.one_hot(at, 12).float()
        return (hot.t() @ x) / hot.sum(0).clamp(min=1)[:, None]
#@ honest scatter_reduce
class ModelNew(Model):
    def forward(self, x, at):
        zeros = torch.zeros(12, 10)
        return zeros.scatter_reduce(0, at[:, None].expand(-1, 10), x, "mean", include_self=False)
#@ useless sum
class ModelNew(Model):
    def forward(self, x, at):
        return torch.zeros(12, 10).index_add_(0, at, x)
#@ useless equal_counts
class ModelNew(Model):
    def forward(self, x, at):
        return torch.zeros(12, 10).index_add_(0, at, x) / 25
