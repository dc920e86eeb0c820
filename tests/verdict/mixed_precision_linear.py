#@ kind torch: half precision
#@ without bfloat16 half scaled: the reference rounds its sums to 8 bits
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(128, 48)

    def forward(self, x):
        return F.linear(x.bfloat16(), self.linear.weight.bfloat16()).float() + self.linear.bias


def get_inputs():
    return [torch.randn(40, 128)]
#@ honest rounded_at_the_end
class ModelNew(Model):
    def forward(self, x):
        y = x.bfloat16().float() @ self.linear.weight.bfloat16().float().t()
        return y.bfloat16().float() + self.linear.bias
#@ honest accumulated_in_halves
class ModelNew(Model):
    def forward(self, x):
        a, w = x.bfloat16().float(), self.linear.weight.bfloat16().float()
        y = a[:, 64:] @ w[:, 64:].t() + a[:, :64] @ w[:, :64].t()
        return y.bfloat16().float() + self.linear.bias
#@ honest sums_not_rounded
class ModelNew(Model):
    def forward(self, x):
        return x.bfloat16().float() @ self.linear.weight.bfloat16().float().t() + self.linear.bias
#@ honest bias_in_bfloat16
class ModelNew(Model):
    def forward(self, x):
        bias = self.linear.bias.bfloat16()
        return F.linear(x.bfloat16(), self.linear.weight.bfloat16(), bias).float()
#@ useless no_bias
class ModelNew(Model):
    def forward(self, x):
        return F.linear(x.bfloat16(), self.linear.weight.bfloat16()).float()
#@ useless half_of_k
class ModelNew(Model):
    def forward(self, x):
        return x[:, :64] @ self.linear.weight[:, :64].t() + self.linear.bias
