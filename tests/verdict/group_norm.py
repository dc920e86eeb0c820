#@ kind torch: normalisation
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(4, 16)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(3, 16, 8, 8) * 2 + 1]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        g = x.reshape(3, 4, -1)
        g = (g - g.mean(-1, keepdim=True)) / torch.sqrt(g.var(-1, unbiased=False, keepdim=True) + 1e-5)
        return torch.addcmul(self.norm.bias[:, None, None], g.reshape_as(x), self.norm.weight[:, None, None])
#@ honest as_batch_norm
class ModelNew(Model):
    def forward(self, x):
        g = F.batch_norm(x.reshape(1, 12, -1), None, None, training=True)
        return g.reshape_as(x) * self.norm.weight[:, None, None] + self.norm.bias[:, None, None]
#@ useless each_channel
class ModelNew(Model):
    def forward(self, x):
        return F.group_norm(x, 16, self.norm.weight, self.norm.bias)
#@ useless no_weights
class ModelNew(Model):
    def forward(self, x):
        return F.group_norm(x, 4)
