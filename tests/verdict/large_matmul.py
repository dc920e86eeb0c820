#@ kind torch: layers
#@ reference
class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.rand(48, 1024), torch.rand(1024, 40)]
#@ honest transposed
class ModelNew(Model):
    def forward(self, a, b):
        return (b.t() @ a.t()).t().contiguous()
#@ honest batches_of_k
class ModelNew(Model):
    def forward(self, a, b):
        parts = torch.bmm(a.reshape(48, 8, 128).transpose(0, 1), b.reshape(8, 128, 40))
        return parts.sum(0)
#@ honest one_column_at_a_time
class ModelNew(Model):
    def forward(self, a, b):
        return torch.stack([(a * b[:, j]).sum(1) for j in range(b.shape[1])], 1)
#@ useless bfloat16_inside
class ModelNew(Model):
    def forward(self, a, b):
        return (a.bfloat16() @ b.bfloat16()).float()
#@ useless half_inside
class ModelNew(Model):
    def forward(self, a, b):
        return a.half().float() @ b.half().float()
#@ useless expected_value
class ModelNew(Model):
    def forward(self, a, b):
        return torch.full((48, 40), 256.0)
#@ useless last_term_missing
class ModelNew(Model):
    def forward(self, a, b):
        return a[:, :-1] @ b[:-1]
