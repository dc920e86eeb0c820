#@ kind torch: pooling
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(12, 9)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def get_inputs():
    return [torch.randn(6, 12, 14, 14) + 0.5]
#@ honest mean
class ModelNew(Model):
    def forward(self, x):
        return self.head(x.mean((2, 3)))
#@ honest sums_in_double
class ModelNew(Model):
    def forward(self, x):
        return self.head((x.double().sum((2, 3)) / 196).float())
#@ useless centre_of_the_picture
class ModelNew(Model):
    def forward(self, x):
        return self.head(x[:, :, 7, 7])
#@ useless bias_only
class ModelNew(Model):
    def forward(self, x):
        return self.head.bias.expand(6, 9).clone()
