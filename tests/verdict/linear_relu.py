#@ kind torch: layers
#@ reference
class Model(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.linear = nn.Linear(n, m)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(32, 64)]


def get_init_inputs():
    return [64, 48]
#@ honest addmm
class ModelNew(Model):
    def forward(self, x):
        return torch.addmm(self.linear.bias, x, self.linear.weight.t()).clamp_(min=0)
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        y = x.double() @ self.linear.weight.double().t() + self.linear.bias.double()
        return y.clamp(min=0).float()
#@ honest einsum
class ModelNew(Model):
    def forward(self, x):
        return F.relu(torch.einsum("ni,oi->no", x, self.linear.weight) + self.linear.bias)
#@ useless no_bias
class ModelNew(Model):
    def forward(self, x):
        return torch.relu(x @ self.linear.weight.t())
#@ useless no_relu
class ModelNew(Model):
    def forward(self, x):
        return self.linear(x)
