"""Convolution in three dimensions, in full float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, OUT, DEPTH, SIZE = 4, 16, 32, 16, 48
torch.backends.cudnn.allow_tf32 = False


# == reference

class Model(nn.Module):
    def __init__(self, channels, out, kernel):
        super().__init__()
        self.conv = nn.Conv3d(channels, out, kernel)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(B, C, DEPTH, SIZE, SIZE)]


def get_init_inputs():
    return [C, OUT, 3]


# == right: a sum of convolutions in two dimensions

class ModelNew(nn.Module):
    def __init__(self, channels, out, kernel):
        super().__init__()
        self.conv = nn.Conv3d(channels, out, kernel)
        self.kernel = kernel

    def forward(self, x):
        batch, depth = x.shape[0], x.shape[2] - self.kernel + 1
        total = None
        for k in range(self.kernel):
            slices = x[:, :, k:k + depth].transpose(1, 2).flatten(0, 1)
            part = F.conv2d(slices, self.conv.weight[:, :, k], self.conv.bias if k == 0 else None)
            total = part if total is None else total.add_(part)
        return total.unflatten(0, (batch, depth)).transpose(1, 2).contiguous()


# == wrong: the last slice of the kernel is left out

class ModelWrong(nn.Module):
    def __init__(self, channels, out, kernel):
        super().__init__()
        self.conv = nn.Conv3d(channels, out, kernel)

    def forward(self, x):
        return F.conv3d(x[:, :, :-1], self.conv.weight[:, :, :-1], self.conv.bias)
