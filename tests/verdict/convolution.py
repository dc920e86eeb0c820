#@ kind torch: convolution
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]
#@ honest unfolded
class ModelNew(Model):
    def forward(self, x):
        columns = F.unfold(x, 3, padding=1)
        y = self.conv.weight.reshape(8, -1) @ columns + self.conv.bias[:, None]
        return y.reshape(2, 8, 16, 16)
#@ honest channels_last
class ModelNew(Model):
    def forward(self, x):
        x = x.to(memory_format=torch.channels_last)
        return self.conv(x).contiguous()
#@ honest shifted_products
class ModelNew(Model):
    def forward(self, x):
        padded = F.pad(x, (1, 1, 1, 1))
        y = self.conv.bias[None, :, None, None]
        for r in range(3):
            for s in range(3):
                tap = self.conv.weight[:, :, r, s]
                y = y + torch.einsum("oc,nchw->nohw", tap, padded[:, :, r : r + 16, s : s + 16])
        return y
#@ useless no_bias
class ModelNew(Model):
    def forward(self, x):
        return F.conv2d(x, self.conv.weight, padding=1)
#@ useless flipped
class ModelNew(Model):
    def forward(self, x):
        return F.conv2d(x, self.conv.weight.flip(2, 3), self.conv.bias, padding=1)
#@ useless bfloat16_inside
class ModelNew(Model):
    def forward(self, x):
        return F.conv2d(x.bfloat16(), self.conv.weight.bfloat16(), self.conv.bias.bfloat16(), padding=1).float()
