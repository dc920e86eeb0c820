"""Convolution, minimum of all channels, hyperbolic tangent twice; in full float32."""
import torch
import torch.nn as nn

B, C, OUT, SIZE = 32, 16, 64, 64
torch.backends.cudnn.allow_tf32 = False


# == reference

class Model(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3)

    def forward(self, x):
        y = self.conv(x)
        y = torch.min(y, dim=1, keepdim=True)[0]
        return torch.tanh(torch.tanh(y))


def get_inputs():
    return [torch.randn(B, C, SIZE, SIZE)]


def get_init_inputs():
    return [C, OUT]


# == right: without places, in place

class ModelNew(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3)

    def forward(self, x):
        return self.conv(x).amin(dim=1, keepdim=True).tanh_().tanh_()


# == wrong: the dimension is gone

class ModelWrong(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3)

    def forward(self, x):
        return self.conv(x).amin(dim=1).tanh_().tanh_()
