"""Product of batches of matrices."""
import torch
import torch.nn as nn

B, M, K, N = 64, 512, 256, 512


# == reference

class Model(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


def get_inputs():
    return [torch.rand(B, M, K), torch.rand(B, K, N)]


def get_init_inputs():
    return []


# == right: by Einstein's sum

class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.einsum("bmk,bkn->bmn", a, b)


# == wrong: the last batch stays zero

class ModelWrong(nn.Module):
    def forward(self, a, b):
        out = torch.zeros(a.shape[0], a.shape[1], b.shape[2], dtype=a.dtype, device=a.device)
        torch.bmm(a[:-1], b[:-1], out=out[:-1])
        return out
