"""Convolution, batch norm in training mode, ReLU; in full float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, OUT, SIZE = 32, 16, 64, 64
torch.backends.cudnn.allow_tf32 = False


# == reference

class Model(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


def get_inputs():
    return [torch.randn(B, C, SIZE, SIZE)]


def get_init_inputs():
    return [C, OUT]


# == right: the norm as one product and one sum, ReLU in place

class ModelNew(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x):
        y = F.conv2d(x, self.conv.weight, padding=1)
        variance, mean = torch.var_mean(y, dim=(0, 2, 3), correction=0)
        factor = self.norm.weight * torch.rsqrt(variance + self.norm.eps)
        shift = self.norm.bias - mean * factor
        return torch.addcmul(shift.view(1, -1, 1, 1), y, factor.view(1, -1, 1, 1)).relu_()


# == wrong: normalised by running statistics

class ModelWrong(nn.Module):
    def __init__(self, channels, out):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x):
        y = F.conv2d(x, self.conv.weight, padding=1)
        norm = self.norm
        y = F.batch_norm(y, norm.running_mean, norm.running_var, norm.weight, norm.bias, False, 0.0, norm.eps)
        return F.relu(y)
