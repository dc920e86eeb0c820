#@ kind torch: gradients
#@ backward
#@ without zeros constant first_result copy: a result without the graph of its inputs has no gradient
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 16)

    def forward(self, x):
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(20, 24)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        h = torch.einsum("ni,oi->no", x, self.linear.weight) + self.linear.bias
        return 0.5 * h * (1 + torch.erf(h / math.sqrt(2)))
#@ honest own_gradient
class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        ctx.save_for_backward(h)
        return h * torch.special.ndtr(h)

    @staticmethod
    def backward(ctx, g):
        (h,) = ctx.saved_tensors
        return g * (torch.special.ndtr(h) + h * torch.exp(-0.5 * h * h) * 0.3989422804)


class ModelNew(Model):
    def forward(self, x):
        return Gelu.apply(torch.addmm(self.linear.bias, x, self.linear.weight.t()))
#@ useless gradient_of_relu
class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        ctx.save_for_backward(h)
        return F.gelu(h)

    @staticmethod
    def backward(ctx, g):
        (h,) = ctx.saved_tensors
        return g * (h > 0)


class ModelNew(Model):
    def forward(self, x):
        return Gelu.apply(self.linear(x))
#@ useless input_detached
class ModelNew(Model):
    def forward(self, x):
        return F.gelu(self.linear(x.detach()))
#@ useless weight_detached
class ModelNew(Model):
    def forward(self, x):
        return F.gelu(F.linear(x, self.linear.weight.detach(), self.linear.bias))
