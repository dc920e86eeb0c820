"""Three linear layers with ReLU between them."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, N, HIDDEN, OUT = 1024, 1024, 2048, 512


# == reference

class Model(nn.Module):
    def __init__(self, n, hidden, out):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out))

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.randn(ROWS, N)]


def get_init_inputs():
    return [N, HIDDEN, OUT]


# == right: products with their sums, ReLU in place

class ModelNew(nn.Module):
    def __init__(self, n, hidden, out):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out))

    def forward(self, x):
        first, second, last = (self.layers[i] for i in (0, 2, 4))
        x = torch.addmm(first.bias, x, first.weight.t()).relu_()
        x = torch.addmm(second.bias, x, second.weight.t()).relu_()
        return torch.addmm(last.bias, x, last.weight.t())


# == wrong: without the second ReLU

class ModelWrong(nn.Module):
    def __init__(self, n, hidden, out):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, out))

    def forward(self, x):
        x = F.relu(self.layers[0](x))
        return self.layers[4](self.layers[2](x))
