#@ kind torch: structures
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return x @ x.t(), x.argmin(1), x > 0, [x.half(), None, 7]


def get_inputs():
    return [torch.randn(16, 24)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        return torch.einsum("ik,jk->ij", x, x), x.min(1).indices, torch.sign(x) == 1, [x.to(torch.float16), None, 7]
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        d = x.double()
        return (d @ d.t()).float(), d.argmin(1), 0 < d, [d.half(), None, 7]
#@ useless other_number
class ModelNew(Model):
    def forward(self, x):
        return x @ x.t(), x.argmin(1), x > 0, [x.half(), None, 8]
#@ useless half_part_scaled
class ModelNew(Model):
    def forward(self, x):
        return x @ x.t(), x.argmin(1), x > 0, [(x * 1.005).half(), None, 7]
