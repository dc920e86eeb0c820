#@ kind torch: integers and bool
#@ without scaled half bfloat16: whole numbers
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return {"count": torch.bincount(x.flatten(), minlength=16), "sum": x.sum(1), "largest": x.amax(1)}


def get_inputs():
    return [torch.randint(0, 16, (40, 30))]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        hot = F.one_hot(x, 16)
        return {"count": hot.sum((0, 1)), "sum": (hot.sum(1) * torch.arange(16)).sum(1), "largest": x.sort(1).values[:, -1]}
#@ honest other_order
class ModelNew(Model):
    def forward(self, x):
        return {"sum": x.cumsum(1)[:, -1], "count": torch.stack([(x == k).sum() for k in range(16)]), "largest": x.max(1).values}
#@ useless two_exchanged
class ModelNew(Model):
    def forward(self, x):
        return {"count": torch.bincount(x.flatten(), minlength=16), "sum": x.amax(1), "largest": x.sum(1)}
#@ useless one_missing
class ModelNew(Model):
    def forward(self, x):
        return {"count": torch.bincount(x.flatten(), minlength=16), "sum": x.sum(1)}
