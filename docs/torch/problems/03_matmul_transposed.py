"""Product of two matrices that both lie transposed."""
import torch
import torch.nn as nn

M, K, N = 1024, 4096, 2048


# == reference

class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a.T, b.T)


def get_inputs():
    return [torch.rand(K, M), torch.rand(N, K)]


def get_init_inputs():
    return []


# == right: from contiguous copies

class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.mm(a.t().contiguous(), b.t().contiguous())


# == wrong: computed in bfloat16

class ModelWrong(nn.Module):
    def forward(self, a, b):
        return torch.mm(a.t().bfloat16(), b.t().bfloat16()).float()
