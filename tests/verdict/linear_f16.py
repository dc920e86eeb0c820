#@ kind torch: half precision
#@ without half bfloat16: the outputs have no more bits
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 40, dtype=torch.float16)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(24, 128, dtype=torch.float16)]
#@ honest in_float
class ModelNew(Model):
    def forward(self, x):
        return F.linear(x.float(), self.linear.weight.float(), self.linear.bias.float()).half()
#@ honest bias_added_later
class ModelNew(Model):
    def forward(self, x):
        return x @ self.linear.weight.t() + self.linear.bias
#@ useless no_bias
class ModelNew(Model):
    def forward(self, x):
        return x @ self.linear.weight.t()
#@ useless half_of_k
class ModelNew(Model):
    def forward(self, x):
        return F.linear(x[:, :64], self.linear.weight[:, :64], self.linear.bias)
