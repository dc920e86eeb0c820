#@ kind torch: half precision
#@ without plus_one scaled half bfloat16 second_half_zero one_element copy: PyTorch has no such operations for float8
#@ reference
class Model(nn.Module):
    def forward(self, x, s):
        return (x * s * 0.3).to(torch.float8_e4m3fn)


def get_inputs():
    return [torch.randn(64, 64, dtype=torch.bfloat16), torch.rand(64, 1, dtype=torch.bfloat16) + 0.5]
#@ honest in_float
class ModelNew(Model):
    def forward(self, x, s):
        return (x.float() * s.float() * 0.3).to(torch.float8_e4m3fn)
#@ honest other_order
class ModelNew(Model):
    def forward(self, x, s):
        return (x * (s * 0.3)).to(torch.float8_e4m3fn)
#@ useless not_scaled
class ModelNew(Model):
    def forward(self, x, s):
        return (x * 0.3).to(torch.float8_e4m3fn)
#@ useless plus_one
class ModelNew(Model):
    def forward(self, x, s):
        return (x * s * 0.3 + 1).to(torch.float8_e4m3fn)
#@ useless magnitude
class ModelNew(Model):
    def forward(self, x, s):
        return (x * s * 0.3).abs().to(torch.float8_e4m3fn)
