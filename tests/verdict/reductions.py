#@ kind torch: structures
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return {"sum": x.sum((1, 2)), "most": x.amax(2), "moments": (x.mean(1), x.var(1))}


def get_inputs():
    return [torch.randn(6, 20, 30)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        m = x.sum(1) / 20
        v = ((x - m[:, None]) ** 2).sum(1) / 19
        return {"sum": x.sum(2).sum(1), "most": x.max(2).values, "moments": (m, v)}
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        d = x.double()
        v, m = torch.var_mean(d, 1)
        return {"sum": d.sum((2, 1)).float(), "most": x.sort(2).values[..., -1], "moments": (m.float(), v.float())}
#@ useless biased_variance
class ModelNew(Model):
    def forward(self, x):
        return {"sum": x.sum((1, 2)), "most": x.amax(2), "moments": (x.mean(1), x.var(1, unbiased=False))}
#@ useless other_axis
class ModelNew(Model):
    def forward(self, x):
        return {"sum": x.sum((1, 2)), "most": x.amax(2), "moments": (x.mean(1), x.mean(1))}
