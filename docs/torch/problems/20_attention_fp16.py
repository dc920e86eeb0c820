"""Attention in float16, step by step."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

B, HEADS, LENGTH, DIM = 8, 16, 1024, 64


# == reference

class Model(nn.Module):
    def forward(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        return torch.matmul(torch.softmax(scores, dim=-1), v)


def get_inputs():
    return [torch.randn(B, HEADS, LENGTH, DIM).half() for _ in range(3)]


def get_init_inputs():
    return []


# == right: fused

class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


# == wrong: the scores are not scaled

class ModelWrong(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, scale=1.0)
