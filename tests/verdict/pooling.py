#@ kind torch: pooling
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(F.max_pool2d(x, 3, stride=2, padding=1), 2)


def get_inputs():
    return [torch.randn(3, 4, 24, 24)]
#@ honest windows
class ModelNew(Model):
    def forward(self, x):
        padded = F.pad(x, (1, 1, 1, 1), value=float("-inf"))
        most = padded.unfold(2, 3, 2).unfold(3, 3, 2).amax((-1, -2))
        return most.unfold(2, 2, 2).unfold(3, 2, 2).mean((-1, -2))
#@ honest separable
class ModelNew(Model):
    def forward(self, x):
        y = F.max_pool2d(x, (3, 1), stride=(2, 1), padding=(1, 0))
        y = F.max_pool2d(y, (1, 3), stride=(1, 2), padding=(0, 1))
        return (y[:, :, ::2, ::2] + y[:, :, 1::2, 1::2] + y[:, :, ::2, 1::2] + y[:, :, 1::2, ::2]) / 4
#@ useless padded_with_zeros
class ModelNew(Model):
    def forward(self, x):
        return F.avg_pool2d(F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, stride=2), 2)
#@ useless average_twice
class ModelNew(Model):
    def forward(self, x):
        return F.avg_pool2d(F.avg_pool2d(x, 3, stride=2, padding=1), 2)
