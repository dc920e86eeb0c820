#@ kind torch: normalisation
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return torch.log_softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(30, 100) * 4]
#@ honest by_logsumexp
class ModelNew(Model):
    def forward(self, x):
        return x - torch.logsumexp(x, -1, keepdim=True)
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        s = x - x.amax(-1, keepdim=True)
        return s - s.exp().sum(-1, keepdim=True).log()
#@ honest log_of_softmax
class ModelNew(Model):
    def forward(self, x):
        return torch.softmax(x, -1).log()
#@ useless shift_only
class ModelNew(Model):
    def forward(self, x):
        return x - x.amax(-1, keepdim=True)
