"""Linear layer, group norm, clamped."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, N, OUT = 2048, 1024, 2048


# == reference

class Model(nn.Module):
    def __init__(self, n, out, groups, low, high):
        super().__init__()
        self.linear = nn.Linear(n, out)
        self.norm = nn.GroupNorm(groups, out)
        self.clamp = nn.Hardtanh(low, high)

    def forward(self, x):
        return self.clamp(self.norm(self.linear(x)))


def get_inputs():
    return [torch.randn(ROWS, N)]


def get_init_inputs():
    return [N, OUT, 16, -2.0, 2.0]


# == right: groups as rows of a layer norm

class ModelNew(nn.Module):
    def __init__(self, n, out, groups, low, high):
        super().__init__()
        self.linear = nn.Linear(n, out)
        self.norm = nn.GroupNorm(groups, out)
        self.groups, self.low, self.high = groups, low, high

    def forward(self, x):
        y = self.linear(x).unflatten(1, (self.groups, -1))
        y = F.layer_norm(y, y.shape[2:], eps=self.norm.eps).flatten(1)
        return torch.addcmul(self.norm.bias, y, self.norm.weight).clamp_(self.low, self.high)


# == wrong: one group

class ModelWrong(nn.Module):
    def __init__(self, n, out, groups, low, high):
        super().__init__()
        self.linear = nn.Linear(n, out)
        self.norm = nn.GroupNorm(groups, out)
        self.low, self.high = low, high

    def forward(self, x):
        y = F.group_norm(self.linear(x), 1, self.norm.weight, self.norm.bias, self.norm.eps)
        return y.clamp_(self.low, self.high)
