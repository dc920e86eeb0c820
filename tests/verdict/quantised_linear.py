#@ kind torch: half precision
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 32)

    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 127
        q = torch.round(x / scale)
        return (q @ self.linear.weight.t()) * scale + self.linear.bias


def get_inputs():
    return [torch.randn(50, 64, dtype=torch.float16).float()]
#@ honest scaled_first
class ModelNew(Model):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 127
        return self.linear(torch.round(x / scale) * scale)
#@ honest multiplied_by_the_inverse
class ModelNew(Model):
    def forward(self, x):
        most = x.abs().amax(-1, keepdim=True)
        q = torch.round(x * (127 / most))
        return (q @ self.linear.weight.t()) * (most / 127) + self.linear.bias
#@ useless not_quantised
class ModelNew(Model):
    def forward(self, x):
        return self.linear(x)
#@ useless truncated
class ModelNew(Model):
    def forward(self, x):
        scale = x.abs().amax(-1, keepdim=True) / 127
        return self.linear(torch.trunc(x / scale) * scale)
