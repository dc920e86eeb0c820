#@ kind torch: integers and bool
#@ without scaled half bfloat16: true or false
#@ reference
class Model(nn.Module):
    def forward(self, a, b):
        return (a > b) & (a.abs() < 1)


def get_inputs():
    return [torch.randn(50, 60), torch.randn(50, 60)]
#@ honest logical_and
class ModelNew(Model):
    def forward(self, a, b):
        return torch.logical_and(torch.lt(b, a), (a > -1) & (a < 1))
#@ honest product
class ModelNew(Model):
    def forward(self, a, b):
        return ((a - b > 0).int() * (a * a < 1).int()).bool()
#@ useless second_condition_missing
class ModelNew(Model):
    def forward(self, a, b):
        return a > b
#@ useless either
class ModelNew(Model):
    def forward(self, a, b):
        return (a > b) | (a.abs() < 1)
