#@ kind torch: losses
#@ reference
class Model(nn.Module):
    def forward(self, x, sign):
        return torch.mean(torch.clamp(1 - x * sign, min=0))


def get_inputs():
    return [torch.randn(128, 20), torch.randint(0, 2, (128, 20)).float() * 2 - 1]
#@ honest relu
class ModelNew(Model):
    def forward(self, x, sign):
        return F.relu(1 - sign * x).sum() / x.numel()
#@ honest maximum
class ModelNew(Model):
    def forward(self, x, sign):
        return torch.maximum(torch.addcmul(torch.ones(()), x, sign, value=-1), torch.zeros(())).mean(0).mean()
#@ useless not_clamped
class ModelNew(Model):
    def forward(self, x, sign):
        return torch.mean(1 - x * sign)
#@ useless sign_ignored
class ModelNew(Model):
    def forward(self, x, sign):
        return torch.mean(torch.clamp(1 - x, min=0))
