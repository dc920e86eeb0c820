#@ kind torch: losses
#@ reference
class Model(nn.Module):
    def forward(self, p, q):
        return F.kl_div(torch.log(q), p, reduction="batchmean")


def get_inputs():
    return [torch.rand(30, 50).softmax(-1), torch.rand(30, 50).softmax(-1)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, p, q):
        return (p * (p.log() - q.log())).sum() / 30
#@ honest quotient
class ModelNew(Model):
    def forward(self, p, q):
        return (p * torch.log(p / q)).sum(1).mean()
#@ useless other_way
class ModelNew(Model):
    def forward(self, p, q):
        return F.kl_div(torch.log(p), q, reduction="batchmean")
#@ useless cross_entropy
class ModelNew(Model):
    def forward(self, p, q):
        return -(p * q.log()).sum() / 30
#@ useless squared
class ModelNew(Model):
    def forward(self, p, q):
        return (0.5 * (p - q) ** 2 / q).sum() / 30
