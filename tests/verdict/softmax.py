#@ kind torch: normalisation
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(16, 2000)]
#@ honest no_shift
class ModelNew(Model):
    def forward(self, x):
        e = x.exp()
        return e / e.sum(1, keepdim=True)
#@ honest from_log
class ModelNew(Model):
    def forward(self, x):
        return (x - torch.logsumexp(x, 1, keepdim=True)).exp_()
#@ honest online_in_chunks
class ModelNew(Model):
    def forward(self, x):
        most = x.new_full((16, 1), float("-inf"))
        total = x.new_zeros(16, 1)
        for part in x.split(250, 1):
            larger = torch.maximum(most, part.amax(1, keepdim=True))
            total = total * (most - larger).exp() + (part - larger).exp().sum(1, keepdim=True)
            most = larger
        return (x - most).exp() / total
#@ useless other_dimension
class ModelNew(Model):
    def forward(self, x):
        return torch.softmax(x, dim=0)
#@ useless uniform
class ModelNew(Model):
    def forward(self, x):
        return torch.full_like(x, 1 / 2000)
#@ useless log_softmax
class ModelNew(Model):
    def forward(self, x):
        return torch.log_softmax(x, 1)
