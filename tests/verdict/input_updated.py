#@ kind torch: state
#@ reference
class Model(nn.Module):
    def forward(self, x, y):
        x.mul_(0.9).add_(y, alpha=0.1)
        return x.sum(1)


def get_inputs():
    return [torch.randn(30, 20), torch.randn(30, 20)]
#@ honest lerp
class ModelNew(Model):
    def forward(self, x, y):
        x.copy_(0.9 * x + 0.1 * y)
        return torch.einsum("ij->i", x)
#@ honest double
class ModelNew(Model):
    def forward(self, x, y):
        d = x.double() * 0.9 + y.double() * 0.1
        x.copy_(d)
        return d.sum(1).float()
#@ useless input_left_alone
class ModelNew(Model):
    def forward(self, x, y):
        return (0.9 * x + 0.1 * y).sum(1)
#@ useless second_term_missing
class ModelNew(Model):
    def forward(self, x, y):
        x.mul_(0.9)
        return x.sum(1)
