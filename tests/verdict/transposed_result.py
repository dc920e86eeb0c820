#@ kind torch: data movement
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return x.permute(2, 0, 1), (x + 1).transpose(0, 1)


def get_inputs():
    return [torch.randn(6, 10, 14)]
#@ honest contiguous
class ModelNew(Model):
    def forward(self, x):
        return x.permute(2, 0, 1).contiguous(), x.transpose(0, 1).contiguous().add_(1)
#@ honest einsum
class ModelNew(Model):
    def forward(self, x):
        return torch.einsum("abc->cab", x), 1 + torch.einsum("abc->bac", x)
#@ useless reshaped
class ModelNew(Model):
    def forward(self, x):
        return x.reshape(14, 6, 10).clone(), (x + 1).reshape(10, 6, 14)
#@ useless one_missing
class ModelNew(Model):
    def forward(self, x):
        return x.permute(2, 0, 1).contiguous(), x.transpose(0, 1).contiguous()
