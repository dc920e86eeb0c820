#@ kind torch: losses
#@ reference
class Model(nn.Module):
    def forward(self, x, label):
        return F.cross_entropy(x, label)


def get_inputs():
    return [torch.randn(40, 30) * 2, torch.randint(0, 30, (40,))]
#@ honest gathered
class ModelNew(Model):
    def forward(self, x, label):
        return (torch.logsumexp(x, 1) - x.gather(1, label[:, None])[:, 0]).mean()
#@ honest one_hot_double
class ModelNew(Model):
    def forward(self, x, label):
        p = torch.log_softmax(x.double(), 1) * F.one_hot(label, 30)
        return (-p.sum() / 40).float()
#@ useless sum_of_losses
class ModelNew(Model):
    def forward(self, x, label):
        return F.cross_entropy(x, label, reduction="sum")
#@ useless smoothed
class ModelNew(Model):
    def forward(self, x, label):
        return F.cross_entropy(x, label, label_smoothing=0.01)
#@ useless uniform_guess
class ModelNew(Model):
    def forward(self, x, label):
        return torch.tensor(math.log(30.0))
