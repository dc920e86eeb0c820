"""Convolution in two dimensions, 3 x 3, in full float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, OUT, SIZE = 16, 64, 128, 64
torch.backends.cudnn.allow_tf32 = False


# == reference

class Model(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(B, C, SIZE, SIZE)]


def get_init_inputs():
    return [C, OUT]


# == right: channels last

class ModelNew(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1)

    def forward(self, x):
        last = torch.channels_last
        weight = self.conv.weight.to(memory_format=last)
        y = F.conv2d(x.to(memory_format=last), weight, self.conv.bias, padding=1)
        return y.contiguous()


# == wrong: edges are repeated instead of padded with zeros

class ModelWrong(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1)

    def forward(self, x):
        return F.conv2d(F.pad(x, (1, 1, 1, 1), mode="replicate"), self.conv.weight, self.conv.bias)
