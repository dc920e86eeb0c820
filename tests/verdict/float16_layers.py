#@ kind torch: half precision
#@ without bfloat16 half scaled: the reference computes its layers in float16
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(96, 96) for _ in range(8))

    def layered(self, x, dtype):
        x = x.to(dtype)
        for layer in self.layers:
            x = F.gelu(F.linear(x, layer.weight.to(dtype), layer.bias.to(dtype))) * 2
        return x.float() * 1.3

    def forward(self, x):
        return self.layered(x, torch.float16)


def get_inputs():
    return [torch.randn(48, 96)]
#@ honest in_float32
class ModelNew(Model):
    def forward(self, x):
        return self.layered(x, torch.float32)
#@ honest in_two_parts
class ModelNew(Model):
    def forward(self, x):
        return torch.cat([super(ModelNew, self).forward(part) for part in (x[:7], x[7:])])
#@ useless in_bfloat16
class ModelNew(Model):
    def forward(self, x):
        return self.layered(x, torch.bfloat16)
#@ useless one_layer_less
class ModelNew(Model):
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.gelu(layer(x)) * 2
        return x * 1.3
