#@ kind torch: convolution
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.point = nn.Conv2d(6, 10, 1)

    def forward(self, x):
        return self.point(self.depth(x))


def get_inputs():
    return [torch.randn(2, 6, 10, 10)]
#@ honest point_as_matmul
class ModelNew(Model):
    def forward(self, x):
        y = self.depth(x).flatten(2)
        y = torch.baddbmm(self.point.bias[None, :, None], self.point.weight[:, :, 0, 0].expand(2, -1, -1), y)
        return y.reshape(2, 10, 10, 10)
#@ honest one_dense_convolution
class ModelNew(Model):
    def forward(self, x):
        p = self.point.weight[:, :, 0, 0]
        weight = p[:, :, None, None] * self.depth.weight[None, :, 0]
        return F.conv2d(x, weight, self.point.bias + p @ self.depth.bias, padding=1)
#@ useless depth_left_out
class ModelNew(Model):
    def forward(self, x):
        return self.point(x)
#@ useless first_filter_for_all
class ModelNew(Model):
    def forward(self, x):
        w = self.depth.weight[:1].expand(6, -1, -1, -1)
        return self.point(F.conv2d(x, w, self.depth.bias, padding=1, groups=6))
