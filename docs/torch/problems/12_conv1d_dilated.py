"""Dilated convolution in one dimension, in full float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, OUT, LENGTH = 32, 64, 64, 8192
torch.backends.cudnn.allow_tf32 = False


# == reference

class Model(nn.Module):
    def __init__(self, channels, out, kernel, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, out, kernel, dilation=dilation, padding=dilation * (kernel // 2))

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(B, C, LENGTH)]


def get_init_inputs():
    return [C, OUT, 3, 4]


# == right: one product for each tap, on shifted inputs

class ModelNew(nn.Module):
    def __init__(self, channels, out, kernel, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, out, kernel, dilation=dilation, padding=dilation * (kernel // 2))
        self.kernel, self.dilation = kernel, dilation

    def forward(self, x):
        length, side = x.shape[2], self.dilation * (self.kernel // 2)
        padded = F.pad(x, (side, side))
        out = self.conv.bias.view(1, -1, 1).repeat(x.shape[0], 1, length)
        for tap in range(self.kernel):
            shifted = padded[:, :, tap * self.dilation:tap * self.dilation + length]
            weight = self.conv.weight[:, :, tap].expand(x.shape[0], -1, -1)
            out.baddbmm_(weight, shifted)
        return out


# == wrong: without dilation

class ModelWrong(nn.Module):
    def __init__(self, channels, out, kernel, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, out, kernel, padding=kernel // 2)

    def forward(self, x):
        return self.conv(x)
