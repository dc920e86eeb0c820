#@ kind torch: state
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(20)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(30, 20) * 3 - 1]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        m, v = x.mean(0), x.var(0, unbiased=False)
        n = self.norm
        n.running_mean.lerp_(m, 0.1)
        n.running_var.lerp_(v * 30 / 29, 0.1)
        n.num_batches_tracked += 1
        return (x - m) * torch.rsqrt(v + 1e-5) * n.weight + n.bias
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        d = x.double()
        m, v = d.mean(0), d.var(0, unbiased=False)
        n = self.norm
        n.running_mean.lerp_(m.float(), 0.1)
        n.running_var.lerp_((v * 30 / 29).float(), 0.1)
        n.num_batches_tracked += 1
        return ((d - m) / torch.sqrt(v + 1e-5)).float() * n.weight + n.bias
#@ useless running_statistics
class ModelNew(Model):
    def forward(self, x):
        n = self.norm
        return F.batch_norm(x, n.running_mean, n.running_var, n.weight, n.bias)
#@ useless mean_kept
class ModelNew(Model):
    def forward(self, x):
        return x * torch.rsqrt(x.var(0, unbiased=False) + 1e-5)
