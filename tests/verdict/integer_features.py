#@ kind torch: layers
#@ finding half_weights: inputs that are whole numbers cannot be moved, weights are not, and what then applies is 1e-4
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(200, 16)

    def forward(self, pixels):
        return torch.sigmoid(self.linear(pixels.float() / 255))


def get_inputs():
    return [torch.randint(0, 256, (30, 200), dtype=torch.uint8)]
#@ honest scaled_weights
class ModelNew(Model):
    def forward(self, pixels):
        y = pixels.float() @ (self.linear.weight / 255).t() + self.linear.bias
        return 1 / (1 + torch.exp(-y))
#@ honest double
class ModelNew(Model):
    def forward(self, pixels):
        y = F.linear(pixels.double() / 255, self.linear.weight.double(), self.linear.bias.double())
        return torch.sigmoid(y).float()
#@ useless half_weights
class ModelNew(Model):
    def forward(self, pixels):
        return torch.sigmoid(F.linear(pixels.float() / 255, self.linear.weight.half().float(), self.linear.bias))
#@ useless divided_by_256
class ModelNew(Model):
    def forward(self, pixels):
        return torch.sigmoid(self.linear(pixels.float() / 256))
