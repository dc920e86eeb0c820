"""Layer norm with weight and bias."""
import torch
import torch.nn as nn

ROWS, N = 16384, 1024


# == reference

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, N) * 2.0 + 0.5]


def get_init_inputs():
    return [N]


# == right: from variance and mean

class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
        scaled = (x - mean).mul_(torch.rsqrt(variance + self.norm.eps))
        return torch.addcmul(self.norm.bias, scaled, self.norm.weight)


# == wrong: the variance is divided by n - 1

class ModelWrong(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, keepdim=True)
        scaled = (x - mean) * torch.rsqrt(variance + self.norm.eps)
        return torch.addcmul(self.norm.bias, scaled, self.norm.weight)
