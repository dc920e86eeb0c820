"""Linear layer and swish in bfloat16, halved."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, N, OUT = 8192, 1024, 4096


# == reference

class Model(nn.Module):
    def __init__(self, n, out, factor):
        super().__init__()
        self.linear = nn.Linear(n, out, dtype=torch.bfloat16)
        self.factor = factor

    def forward(self, x):
        y = self.linear(x)
        return y * torch.sigmoid(y) * self.factor


def get_inputs():
    return [torch.randn(ROWS, N).to(torch.bfloat16)]


def get_init_inputs():
    return [N, OUT, 0.5]


# == right: in place

class ModelNew(nn.Module):
    def __init__(self, n, out, factor):
        super().__init__()
        self.linear = nn.Linear(n, out, dtype=torch.bfloat16)
        self.factor = factor

    def forward(self, x):
        y = torch.addmm(self.linear.bias, x, self.linear.weight.t())
        return F.silu(y, inplace=True).mul_(self.factor)


# == wrong: halved before the swish

class ModelWrong(nn.Module):
    def __init__(self, n, out, factor):
        super().__init__()
        self.linear = nn.Linear(n, out, dtype=torch.bfloat16)
        self.factor = factor

    def forward(self, x):
        return F.silu(self.linear(x) * self.factor)
