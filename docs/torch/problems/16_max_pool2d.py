"""Pooling by the maximum, windows that overlap."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SHAPE = (16, 64, 128, 128)


# == reference

class Model(nn.Module):
    def __init__(self, kernel, stride, padding):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel, stride=stride, padding=padding)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(*SHAPE)]


def get_init_inputs():
    return [3, 2, 1]


# == right: columns after rows

class ModelNew(nn.Module):
    def __init__(self, kernel, stride, padding):
        super().__init__()
        self.rows = nn.MaxPool2d((1, kernel), stride=(1, stride), padding=(0, padding))
        self.columns = nn.MaxPool2d((kernel, 1), stride=(stride, 1), padding=(padding, 0))

    def forward(self, x):
        return self.columns(self.rows(x))


# == wrong: padded with zeros, which are above negative maxima

class ModelWrong(nn.Module):
    def __init__(self, kernel, stride, padding):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel, stride=stride)
        self.padding = padding

    def forward(self, x):
        return self.pool(F.pad(x, (self.padding,) * 4))
