"""Leaky ReLU with a slope of its own."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SHAPE = (8192, 2048)


# == reference

class Model(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return F.leaky_relu(x, negative_slope=self.slope)


def get_inputs():
    return [torch.randn(*SHAPE)]


def get_init_inputs():
    return [0.2]


# == right: the larger of x and its multiple

class ModelNew(nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return torch.maximum(x, x * self.slope)


# == wrong: ignores the slope

class ModelWrong(nn.Module):
    def __init__(self, slope):
        super().__init__()

    def forward(self, x):
        return F.leaky_relu(x)
