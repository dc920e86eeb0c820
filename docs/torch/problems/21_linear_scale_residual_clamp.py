"""Linear layer, scaled, added to itself, clamped."""
import torch
import torch.nn as nn

ROWS, N = 2048, 2048


# == reference

class Model(nn.Module):
    def __init__(self, n, scale, low, high):
        super().__init__()
        self.linear = nn.Linear(n, n)
        self.scale, self.low, self.high = scale, low, high

    def forward(self, x):
        y = self.linear(x)
        y = y * self.scale + y
        return torch.clamp(y, min=self.low, max=self.high)


def get_inputs():
    return [torch.randn(ROWS, N)]


def get_init_inputs():
    return [N, 0.5, -0.75, 0.75]


# == right: the factor within the product, clamped in place

class ModelNew(nn.Module):
    def __init__(self, n, scale, low, high):
        super().__init__()
        self.linear = nn.Linear(n, n)
        self.scale, self.low, self.high = scale, low, high

    def forward(self, x):
        factor = 1.0 + self.scale
        y = torch.addmm(self.linear.bias, x, self.linear.weight.t(), beta=factor, alpha=factor)
        return y.clamp_(self.low, self.high)


# == wrong: clamped before it is added

class ModelWrong(nn.Module):
    def __init__(self, n, scale, low, high):
        super().__init__()
        self.linear = nn.Linear(n, n)
        self.scale, self.low, self.high = scale, low, high

    def forward(self, x):
        y = self.linear(x)
        return (y * self.scale).clamp_(self.low, self.high) + y
