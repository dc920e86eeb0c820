"""Transposed convolution in two dimensions, in full float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, OUT, SIZE = 16, 64, 32, 64
torch.backends.cudnn.allow_tf32 = False


# == reference

class Model(nn.Module):
    def __init__(self, channels, out, kernel, stride, padding):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, out, kernel, stride=stride, padding=padding)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(B, C, SIZE, SIZE)]


def get_init_inputs():
    return [C, OUT, 4, 2, 1]


# == right: a product, folded

class ModelNew(nn.Module):
    def __init__(self, channels, out, kernel, stride, padding):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, out, kernel, stride=stride, padding=padding)
        self.kernel, self.stride, self.padding = kernel, stride, padding

    def forward(self, x):
        columns = torch.matmul(self.conv.weight.flatten(1).t(), x.flatten(2))
        size = [(n - 1) * self.stride - 2 * self.padding + self.kernel for n in x.shape[2:]]
        out = F.fold(columns, size, self.kernel, padding=self.padding, stride=self.stride)
        return out.add_(self.conv.bias.view(1, -1, 1, 1))


# == wrong: the kernel is turned round

class ModelWrong(nn.Module):
    def __init__(self, channels, out, kernel, stride, padding):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, out, kernel, stride=stride, padding=padding)
        self.stride, self.padding = stride, padding

    def forward(self, x):
        return F.conv_transpose2d(x, self.conv.weight.flip(2, 3), self.conv.bias, self.stride, self.padding)
