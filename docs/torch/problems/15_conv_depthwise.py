"""Convolution of each channel for itself, in full float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, SIZE = 16, 64, 128
torch.backends.cudnn.allow_tf32 = False


# == reference

class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(B, C, SIZE, SIZE)]


def get_init_inputs():
    return [C]


# == right: nine shifted products, added in place

class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)

    def forward(self, x):
        height, width = x.shape[2:]
        padded = F.pad(x, (1, 1, 1, 1))
        out = torch.zeros_like(x)
        for i in range(3):
            for j in range(3):
                weight = self.conv.weight[:, :, i, j].view(1, -1, 1, 1)
                out.addcmul_(padded[:, :, i:i + height, j:j + width], weight)
        return out


# == wrong: the last of the nine is left out

class ModelWrong(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)

    def forward(self, x):
        height, width = x.shape[2:]
        padded = F.pad(x, (1, 1, 1, 1))
        out = torch.zeros_like(x)
        for tap in range(8):
            i, j = divmod(tap, 3)
            weight = self.conv.weight[:, :, i, j].view(1, -1, 1, 1)
            out.addcmul_(padded[:, :, i:i + height, j:j + width], weight)
        return out
