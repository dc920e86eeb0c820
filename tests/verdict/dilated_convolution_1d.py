#@ kind torch: convolution
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(5, 7, 3, stride=2, dilation=2)

    def forward(self, x):
        return F.leaky_relu(self.conv(x), 0.1)


def get_inputs():
    return [torch.randn(4, 5, 41)]
#@ honest taps
class ModelNew(Model):
    def forward(self, x):
        taps = [torch.einsum("oc,ncl->nol", self.conv.weight[:, :, k], x[:, :, 2 * k : 2 * k + 37 : 2]) for k in range(3)]
        y = taps[2] + taps[1] + taps[0] + self.conv.bias[:, None]
        return torch.maximum(y, 0.1 * y)
#@ honest as_2d
class ModelNew(Model):
    def forward(self, x):
        y = F.conv2d(x[:, :, None], self.conv.weight[:, :, None], self.conv.bias, stride=(1, 2), dilation=(1, 2))
        return torch.where(y > 0, y, y * 0.1)[:, :, 0]
#@ useless relu
class ModelNew(Model):
    def forward(self, x):
        return F.relu(self.conv(x))
#@ useless not_dilated
class ModelNew(Model):
    def forward(self, x):
        return F.leaky_relu(F.conv1d(x, self.conv.weight, self.conv.bias, stride=2)[:, :, :19].contiguous(), 0.1)
