#@ kind torch: layers
#@ weak what one unit in the inputs changes is far more than what rounding inside does
#@ reference
class Model(nn.Module):
    def forward(self, t):
        rate = torch.exp(-math.log(10000.0) * torch.arange(32) / 32)
        angle = t[:, None] * rate
        return torch.cat([torch.sin(angle), torch.cos(angle)], -1)


def get_inputs():
    return [torch.rand(50) * 1000]
#@ honest powers
class ModelNew(Model):
    def forward(self, t):
        angle = torch.outer(t, 10000.0 ** (torch.arange(32) / -32))
        return torch.cat([angle.sin_(), torch.outer(t, 10000.0 ** (torch.arange(32) / -32)).cos_()], 1)
#@ honest double
class ModelNew(Model):
    def forward(self, t):
        angle = t.double()[:, None] * torch.exp(-math.log(10000.0) * torch.arange(32).double() / 32)
        return torch.cat([torch.sin(angle), torch.cos(angle)], -1).float()
#@ useless exchanged
class ModelNew(Model):
    def forward(self, t):
        angle = t[:, None] * torch.exp(-math.log(10000.0) * torch.arange(32) / 32)
        return torch.cat([torch.cos(angle), torch.sin(angle)], -1)
#@ useless whole_steps
class ModelNew(Model):
    def forward(self, t):
        angle = t.floor()[:, None] * torch.exp(-math.log(10000.0) * torch.arange(32) / 32)
        return torch.cat([torch.sin(angle), torch.cos(angle)], -1)
