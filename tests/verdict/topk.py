#@ kind torch: integers and bool
#@ without half bfloat16: whole numbers below 12 have few bits
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return torch.topk(x, 6, dim=1)


def get_inputs():
    return [torch.randint(0, 12, (24, 64)).float()]
#@ honest stable_sort
class ModelNew(Model):
    def forward(self, x):
        v, i = torch.sort(x, dim=1, descending=True, stable=True)
        return v[:, :6], i[:, :6]
#@ honest one_after_the_other
class ModelNew(Model):
    def forward(self, x):
        x, values, places = x.clone(), [], []
        for _ in range(6):
            v, i = x.max(1)
            x.scatter_(1, i[:, None], -1.0)
            values.append(v)
            places.append(i)
        return torch.stack(values, 1), torch.stack(places, 1)
#@ useless first_six
class ModelNew(Model):
    def forward(self, x):
        return x[:, :6].clone(), torch.arange(6).repeat(24, 1)
#@ useless one_index_for_all
class ModelNew(Model):
    def forward(self, x):
        v, i = torch.topk(x, 6, dim=1)
        return v, i[:, :1].repeat(1, 6)
#@ useless smallest
class ModelNew(Model):
    def forward(self, x):
        return torch.topk(x, 6, dim=1, largest=False)
