#@ kind torch: attention
#@ reference
class Model(nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        return torch.softmax(scores, -1) @ v


def get_inputs():
    return [torch.randn(2, 3, 24, 16) for _ in range(3)]
#@ honest library
class ModelNew(Model):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)
#@ honest online
class ModelNew(Model):
    def forward(self, q, k, v):
        q = q * 0.25
        most = q.new_full((2, 3, 24, 1), -1e30)
        total, mix = torch.zeros_like(most), torch.zeros_like(q)
        for at in range(0, 24, 8):
            s = q @ k[:, :, at : at + 8].transpose(-1, -2)
            larger = torch.maximum(most, s.amax(-1, keepdim=True))
            keep, e = (most - larger).exp(), (s - larger).exp()
            total = total * keep + e.sum(-1, keepdim=True)
            mix = mix * keep + e @ v[:, :, at : at + 8]
            most = larger
        return mix / total
#@ honest einsum_no_shift
class ModelNew(Model):
    def forward(self, q, k, v):
        e = torch.einsum("bhqd,bhkd->bhqk", q, k).mul_(0.25).exp_()
        return torch.einsum("bhqk,bhkd->bhqd", e, v) / e.sum(-1, keepdim=True)
#@ useless no_scale
class ModelNew(Model):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v
#@ useless mean_of_values
class ModelNew(Model):
    def forward(self, q, k, v):
        return v.mean(2, keepdim=True).expand_as(v).clone()
#@ useless causal
class ModelNew(Model):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
#@ useless bfloat16_inside
class ModelNew(Model):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q.bfloat16(), k.bfloat16(), v.bfloat16()).float()
