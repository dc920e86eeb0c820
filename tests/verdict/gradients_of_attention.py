#@ kind torch: gradients
#@ backward
#@ without zeros constant first_result copy: a result without the graph of its inputs has no gradient
#@ reference
class Model(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ v


def get_inputs():
    return [torch.randn(2, 20, 16) for _ in range(3)]
#@ honest library
class ModelNew(Model):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)
#@ honest no_shift
class ModelNew(Model):
    def forward(self, q, k, v):
        e = torch.exp(torch.einsum("bqd,bkd->bqk", q, k) * 0.25)
        return torch.einsum("bqk,bkd->bqd", e, v) / e.sum(-1, keepdim=True)
#@ useless weights_detached
class ModelNew(Model):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) / 4, -1).detach() @ v
