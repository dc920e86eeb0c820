#@ kind torch: double precision
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, 1) - x.mean(1)


def get_inputs():
    return [torch.randn(20, 300, dtype=torch.float64)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        return x.exp().sum(1).log() - x.sum(1) / 300
#@ honest relative_to_the_mean
class ModelNew(Model):
    def forward(self, x):
        return (x - x.mean(1, keepdim=True)).exp().sum(1).log()
#@ useless single
class ModelNew(Model):
    def forward(self, x):
        x = x.float()
        return (torch.logsumexp(x, 1) - x.mean(1)).double()
#@ useless mean_missing
class ModelNew(Model):
    def forward(self, x):
        return torch.logsumexp(x, 1)
