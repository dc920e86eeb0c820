#@ kind torch: convolution
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 6, 3)
        self.norm = nn.BatchNorm2d(6)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)
        self.eval()

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(3, 4, 12, 12)]
#@ honest folded
class ModelNew(Model):
    def forward(self, x):
        n = self.norm
        scale = n.weight / torch.sqrt(n.running_var + n.eps)
        shift = n.bias - n.running_mean * scale + self.conv.bias * scale
        return F.conv2d(x, self.conv.weight * scale[:, None, None, None], shift).relu_()
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        n = self.norm
        y = self.conv(x) - n.running_mean[:, None, None]
        y *= torch.rsqrt(n.running_var + n.eps)[:, None, None]
        return torch.relu(y * n.weight[:, None, None] + n.bias[:, None, None])
#@ useless statistics_of_the_batch
class ModelNew(Model):
    def forward(self, x):
        return torch.relu(F.batch_norm(self.conv(x), None, None, self.norm.weight, self.norm.bias, training=True))
#@ useless no_norm
class ModelNew(Model):
    def forward(self, x):
        return torch.relu(self.conv(x))
