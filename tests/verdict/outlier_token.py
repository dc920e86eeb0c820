#@ kind torch: layers
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    x = torch.randn(2048, 64)
    x[7] *= 10000
    return [x]
#@ honest einsum
class ModelNew(Model):
    def forward(self, x):
        return torch.einsum("ni,oi->no", x, self.linear.weight) + self.linear.bias
#@ honest in_parts
class ModelNew(Model):
    def forward(self, x):
        w = self.linear.weight
        parts = [x[:, at : at + 16] @ w[:, at : at + 16].t() for at in range(0, 64, 16)]
        return self.linear.bias + parts[3] + parts[2] + parts[1] + parts[0]
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        return F.linear(x.double(), self.linear.weight.double(), self.linear.bias.double()).float()
#@ useless half_inside
class ModelNew(Model):
    def forward(self, x):
        return F.linear(x.bfloat16().float(), self.linear.weight.bfloat16().float(), self.linear.bias)
#@ useless no_bias
class ModelNew(Model):
    def forward(self, x):
        return x @ self.linear.weight.t()
