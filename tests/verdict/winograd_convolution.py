#@ kind torch: convolution
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, padding=1, bias=False)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 8, 16, 16)]


def winograd(x, weight, size, b, g, a):
    tile = size + 2
    y = F.pad(x, (1, 1, 1, 1)).unfold(2, tile, size).unfold(3, tile, size)
    v = torch.einsum("ip,nchwpq,jq->nchwij", b, y, b)
    u = torch.einsum("ip,ocpq,jq->ocij", g, weight, g)
    m = torch.einsum("ocij,nchwij->nohwij", u, v)
    y = torch.einsum("pi,nohwij,qj->nohpwq", a, m, a)
    return y.reshape(x.shape[0], weight.shape[0], x.shape[2], x.shape[3])
#@ honest tiles_of_two
class ModelNew(Model):
    def forward(self, x):
        b = torch.tensor([[1.0, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
        g = torch.tensor([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
        a = torch.tensor([[1.0, 1, 1, 0], [0, 1, -1, -1]])
        return winograd(x, self.conv.weight, 2, b, g, a)
#@ honest tiles_of_four
class ModelNew(Model):
    def forward(self, x):
        b = torch.tensor([
            [4.0, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
            [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1],
        ])
        g = torch.tensor([
            [1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6],
            [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1],
        ])
        a = torch.tensor([[1.0, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]])
        return winograd(x, self.conv.weight, 4, b, g, a)
#@ honest fourier
class ModelNew(Model):
    def forward(self, x):
        spectrum = torch.fft.rfft2(x, s=(20, 20))
        kernel = torch.fft.rfft2(self.conv.weight.flip(2, 3), s=(20, 20))
        y = torch.fft.irfft2(torch.einsum("nchw,ochw->nohw", spectrum, kernel), s=(20, 20))
        return y[:, :, 1:17, 1:17].contiguous()
#@ useless half_filters
class ModelNew(Model):
    def forward(self, x):
        return F.conv2d(x, self.conv.weight.half().float(), padding=1)
#@ useless last_channel_missing
class ModelNew(Model):
    def forward(self, x):
        return F.conv2d(x[:, :7], self.conv.weight[:, :7], padding=1)
