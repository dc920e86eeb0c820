#@ kind torch: convolution
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ConvTranspose2d(4, 3, 3, stride=2)

    def forward(self, x):
        return torch.tanh(self.conv(x))


def get_inputs():
    return [torch.randn(2, 4, 7, 7)]
#@ honest folded
class ModelNew(Model):
    def forward(self, x):
        columns = torch.einsum("nchw,cokl->noklhw", x, self.conv.weight).reshape(2, 27, 49)
        y = F.fold(columns, (15, 15), 3, stride=2) + self.conv.bias[:, None, None]
        return torch.tanh_(y)
#@ honest as_convolution
class ModelNew(Model):
    def forward(self, x):
        spread = x.new_zeros(2, 4, 13, 13)
        spread[:, :, ::2, ::2] = x
        weight = self.conv.weight.flip(2, 3).transpose(0, 1)
        return torch.tanh(F.conv2d(spread, weight, self.conv.bias, padding=2))
#@ useless no_tanh
class ModelNew(Model):
    def forward(self, x):
        return self.conv(x)
#@ useless not_flipped
class ModelNew(Model):
    def forward(self, x):
        return torch.tanh(F.conv_transpose2d(x, self.conv.weight.flip(2, 3), self.conv.bias, stride=2))
