"""Rows of a table."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ENTRIES, WIDTH, B, LENGTH = 8192, 512, 64, 512


# == reference

class Model(nn.Module):
    def __init__(self, entries, width):
        super().__init__()
        self.table = nn.Embedding(entries, width)

    def forward(self, index):
        return self.table(index.long())


def get_inputs():
    return [torch.randint(0, ENTRIES, (B, LENGTH))]


def get_init_inputs():
    return [ENTRIES, WIDTH]


# == right: selected along the first dimension

class ModelNew(nn.Module):
    def __init__(self, entries, width):
        super().__init__()
        self.table = nn.Embedding(entries, width)

    def forward(self, index):
        rows = torch.index_select(self.table.weight, 0, index.long().flatten())
        return rows.unflatten(0, index.shape)


# == wrong: never reads the last entry

class ModelWrong(nn.Module):
    def __init__(self, entries, width):
        super().__init__()
        self.table = nn.Embedding(entries, width)
        self.last = entries - 2

    def forward(self, index):
        return F.embedding(index.long().clamp(max=self.last), self.table.weight)
