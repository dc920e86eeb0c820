"""Basic block of a ResNet, batch norms in training mode; in full float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, OUT, SIZE = 8, 32, 64, 56
torch.backends.cudnn.allow_tf32 = False


# == reference

class Model(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.short = nn.Sequential(
            nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.short(x))


def get_inputs():
    return [torch.randn(B, C, SIZE, SIZE)]


def get_init_inputs():
    return [C, OUT, 1]


# == right: the short path as a product, sums and ReLU in place

class ModelNew(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.short = nn.Sequential(
            nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))
        self.stride = stride

    @staticmethod
    def normalised(x, norm):
        return F.batch_norm(x, None, None, norm.weight, norm.bias, True, 0.0, norm.eps)

    def forward(self, x):
        kept = x[:, :, ::self.stride, ::self.stride]
        short = torch.matmul(self.short[0].weight.flatten(1), kept.flatten(2)).unflatten(2, kept.shape[2:])
        y = self.normalised(self.conv1(x), self.bn1).relu_()
        y = self.normalised(self.conv2(y), self.bn2)
        return y.add_(self.normalised(short, self.short[1])).relu_()


# == wrong: the short path is not normalised

class ModelWrong(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.short = nn.Sequential(
            nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.short[0](x))
