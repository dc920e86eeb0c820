#@ kind torch: layers
#@ reference
class Model(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(64, 64), torch.randn(64, 64)]


def strassen(x, y, levels):
    if levels == 0:
        return x @ y
    n = x.shape[0] // 2
    a, b, c, d = x[:n, :n], x[:n, n:], x[n:, :n], x[n:, n:]
    e, f, g, h = y[:n, :n], y[:n, n:], y[n:, :n], y[n:, n:]
    p = strassen(a + d, e + h, levels - 1)
    q = strassen(c + d, e, levels - 1)
    r = strassen(a, f - h, levels - 1)
    s = strassen(d, g - e, levels - 1)
    t = strassen(a + b, h, levels - 1)
    u = strassen(c - a, e + f, levels - 1)
    v = strassen(b - d, g + h, levels - 1)
    return torch.cat([torch.cat([p + s - t + v, r + t], 1), torch.cat([q + s, p - q + r + u], 1)])
#@ honest one_level
class ModelNew(Model):
    def forward(self, a, b):
        return strassen(a, b, 1)
#@ honest two_levels
class ModelNew(Model):
    def forward(self, a, b):
        return strassen(a, b, 2)
#@ useless one_product_missing
class ModelNew(Model):
    def forward(self, a, b):
        return a @ b - a[:, :1] @ b[:1]
#@ useless half_inside
class ModelNew(Model):
    def forward(self, a, b):
        return (a.half() @ b.half()).float()
