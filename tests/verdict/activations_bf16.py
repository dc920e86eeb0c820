#@ kind torch: half precision
#@ without half bfloat16: the outputs have no more bits
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return F.silu(x) * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(40, 64, dtype=torch.bfloat16)]
#@ honest in_float
class ModelNew(Model):
    def forward(self, x):
        f = x.float()
        s = torch.sigmoid(f)
        return (f * s * s).bfloat16()
#@ honest other_order
class ModelNew(Model):
    def forward(self, x):
        s = torch.sigmoid(x)
        return s * s * x
#@ useless one_sigmoid
class ModelNew(Model):
    def forward(self, x):
        return F.silu(x)
#@ useless relu
class ModelNew(Model):
    def forward(self, x):
        return F.relu(x)
