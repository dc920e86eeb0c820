"""LSTM over a sequence; in full float32."""
import torch
import torch.nn as nn

B, LENGTH, N, HIDDEN = 64, 24, 128, 256
torch.backends.cudnn.allow_tf32 = False


# == reference

class Model(nn.Module):
    def __init__(self, n, hidden):
        super().__init__()
        self.lstm = nn.LSTM(n, hidden, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


def get_inputs():
    return [torch.randn(B, LENGTH, N)]


def get_init_inputs():
    return [N, HIDDEN]


# == right: step by step, inputs of all steps in one product

class ModelNew(nn.Module):
    def __init__(self, n, hidden):
        super().__init__()
        self.lstm = nn.LSTM(n, hidden, batch_first=True)

    def forward(self, x):
        lstm = self.lstm
        given = torch.matmul(x, lstm.weight_ih_l0.t()) + (lstm.bias_ih_l0 + lstm.bias_hh_l0)
        h = torch.zeros(x.shape[0], lstm.hidden_size, dtype=x.dtype, device=x.device)
        c = torch.zeros_like(h)
        out = torch.empty(x.shape[0], x.shape[1], lstm.hidden_size, dtype=x.dtype, device=x.device)
        for t in range(x.shape[1]):
            i, f, g, o = torch.addmm(given[:, t], h, lstm.weight_hh_l0.t()).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            out[:, t] = h
        return out


# == wrong: begins with the state that the call before left

class ModelWrong(nn.Module):
    def __init__(self, n, hidden):
        super().__init__()
        self.lstm = nn.LSTM(n, hidden, batch_first=True)
        self.state = None

    def forward(self, x):
        out, self.state = self.lstm(x, self.state)
        return out
