"""Product of a tall and a wide matrix with a short inner dimension."""
import torch
import torch.nn as nn

M, K, N = 8192, 32, 8192


# == reference

class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.rand(M, K), torch.rand(K, N)]


def get_init_inputs():
    return []


# == right: two halves of the inner dimension, added in place

class ModelNew(nn.Module):
    def forward(self, a, b):
        half = a.shape[1] // 2
        out = torch.mm(a[:, :half], b[:half])
        return out.addmm_(a[:, half:], b[half:])


# == wrong: the last column and row of the inner dimension are left out

class ModelWrong(nn.Module):
    def forward(self, a, b):
        return torch.mm(a[:, :-1], b[:-1])
