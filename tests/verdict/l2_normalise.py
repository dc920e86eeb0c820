#@ kind torch: normalisation
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return x / torch.norm(x, p=2, dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(20, 500)]
#@ honest functional
class ModelNew(Model):
    def forward(self, x):
        return F.normalize(x, dim=1)
#@ honest by_reciprocal_root
class ModelNew(Model):
    def forward(self, x):
        return x * torch.rsqrt(torch.einsum("ij,ij->i", x, x))[:, None]
#@ useless first_norm
class ModelNew(Model):
    def forward(self, x):
        return x / x.abs().sum(1, keepdim=True)
#@ useless expected_norm
class ModelNew(Model):
    def forward(self, x):
        return x / math.sqrt(500)
