#@ kind torch: losses
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.TripletMarginLoss(margin=1.0)

    def forward(self, a, p, n):
        return self.loss(a, p, n)


def get_inputs():
    return [torch.randn(60, 32), torch.randn(60, 32), torch.randn(60, 32)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, a, p, n):
        near = torch.linalg.vector_norm(a - p + 1e-6, dim=1)
        far = torch.linalg.vector_norm(a - n + 1e-6, dim=1)
        return torch.relu(near - far + 1).mean()
#@ honest without_epsilon
class ModelNew(Model):
    def forward(self, a, p, n):
        near = ((a - p) ** 2).sum(1).sqrt()
        far = ((a - n) ** 2).sum(1).sqrt()
        return torch.relu(near - far + 1).mean()
#@ useless no_margin
class ModelNew(Model):
    def forward(self, a, p, n):
        return torch.relu((a - p).norm(dim=1) - (a - n).norm(dim=1)).mean()
#@ useless negatives_ignored
class ModelNew(Model):
    def forward(self, a, p, n):
        return (a - p).norm(dim=1).mean()
