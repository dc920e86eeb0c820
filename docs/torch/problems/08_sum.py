"""Sum over the middle dimension."""
import torch
import torch.nn as nn

SHAPE = (128, 1024, 256)


# == reference

class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.sum(x, dim=self.dim, keepdim=True)


def get_inputs():
    return [torch.rand(*SHAPE)]


def get_init_inputs():
    return [1]


# == right: a product with ones

class ModelNew(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        x = x.movedim(self.dim, 1)
        ones = torch.ones(x.shape[0], 1, x.shape[1], dtype=x.dtype, device=x.device)
        return torch.bmm(ones, x).movedim(1, self.dim)


# == wrong: stops at the last multiple of 1000

class ModelWrong(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        kept = x.shape[self.dim] // 1000 * 1000
        return x.narrow(self.dim, 0, kept).sum(dim=self.dim, keepdim=True)
