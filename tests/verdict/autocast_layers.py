#@ kind torch: half precision
#@ without bfloat16 half scaled: the reference computes its layers in bfloat16
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(96, 96) for _ in range(6))

    def layered(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x

    def forward(self, x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            return self.layered(x).float()


def get_inputs():
    return [torch.randn(48, 96)]
#@ honest in_float32
class ModelNew(Model):
    def forward(self, x):
        return self.layered(x)
#@ honest in_two_parts
class ModelNew(Model):
    def forward(self, x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            return torch.cat([self.layered(x[:7]), self.layered(x[7:])]).float()
#@ honest cast_by_hand
class ModelNew(Model):
    def forward(self, x):
        for layer in self.layers:
            y = F.linear(x.bfloat16(), layer.weight.bfloat16(), layer.bias.bfloat16())
            x = x + torch.tanh(y.float())
        return x
#@ useless one_layer_less
class ModelNew(Model):
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = x + torch.tanh(layer(x))
        return x
#@ useless no_bias_in_the_last
class ModelNew(Model):
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = x + torch.tanh(layer(x))
        return x + torch.tanh(F.linear(x, self.layers[-1].weight))
