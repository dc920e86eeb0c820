#@ kind torch: state
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        return self.drop(x) * 2


def get_inputs():
    return [torch.randn(40, 50)]
#@ honest functional
class ModelNew(Model):
    def forward(self, x):
        return F.dropout(2 * x, 0.3)
#@ honest mask_of_ones
class ModelNew(Model):
    def forward(self, x):
        return x * F.dropout(torch.ones_like(x), 0.3) * 2
#@ useless no_dropout
class ModelNew(Model):
    def forward(self, x):
        return x * 2
#@ useless expected_value
class ModelNew(Model):
    def forward(self, x):
        return x * 2 * 0.7
#@ useless not_scaled
class ModelNew(Model):
    def forward(self, x):
        return F.dropout(2 * x, 0.3) * 0.7
