#@ kind torch: attention
#@ reference
class Model(nn.Module):
    def __init__(self, n, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(n, 3 * n)
        self.out = nn.Linear(n, n)

    def forward(self, x):
        b, t, n = x.shape
        q, k, v = (p.reshape(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        s = q @ k.transpose(-1, -2) / math.sqrt(n // self.heads)
        s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
        return self.out((torch.softmax(s, -1) @ v).transpose(1, 2).reshape(b, t, n))


def get_inputs():
    return [torch.randn(2, 20, 32)]


def get_init_inputs():
    return [32, 4]
#@ honest library
class ModelNew(Model):
    def forward(self, x):
        b, t, n = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))
#@ honest large_negative_mask
class ModelNew(Model):
    def forward(self, x):
        b, t, n = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        s = torch.einsum("bhqd,bhkd->bhqk", q * 8**-0.5, k) + torch.full((t, t), -1e9).triu(1)
        y = torch.einsum("bhqk,bhkd->bqhd", s.softmax(-1), v).flatten(2)
        return y @ self.out.weight.t() + self.out.bias
#@ useless not_causal
class ModelNew(Model):
    def forward(self, x):
        b, t, n = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
#@ useless values_only
class ModelNew(Model):
    def forward(self, x):
        return self.out(self.qkv(x).chunk(3, -1)[2])
