"""RMS norm in bfloat16, computed in float32 and rounded once."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, N = 8192, 2048


# == reference

class Model(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n, dtype=torch.bfloat16))

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return (wide * scale * self.weight.float()).to(x.dtype)


def get_inputs():
    return [torch.randn(ROWS, N).to(torch.bfloat16)]


def get_init_inputs():
    return [N, 0.1]


# == right: one operator

class ModelNew(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n, dtype=torch.bfloat16))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


# == wrong: with the usual epsilon in place of the given one

class ModelWrong(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n, dtype=torch.bfloat16))

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-5)
