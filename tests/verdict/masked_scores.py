#@ kind torch: attention
#@ reference
class Model(nn.Module):
    def forward(self, s, keep):
        return s.masked_fill(~keep, float("-inf")) * 0.5


def get_inputs():
    return [torch.randn(30, 40), torch.rand(30, 40) > 0.5]
#@ honest where
class ModelNew(Model):
    def forward(self, s, keep):
        return torch.where(keep, s / 2, -math.inf)
#@ honest added
class ModelNew(Model):
    def forward(self, s, keep):
        return s * 0.5 + torch.zeros_like(s).masked_fill_(keep.logical_not(), -math.inf)
#@ useless large_negative
class ModelNew(Model):
    def forward(self, s, keep):
        return s.masked_fill(~keep, -1e9) * 0.5
#@ useless mask_ignored
class ModelNew(Model):
    def forward(self, s, keep):
        return s * 0.5
#@ useless all_masked
class ModelNew(Model):
    def forward(self, s, keep):
        return torch.full_like(s, -math.inf)
#@ useless opposite_mask
class ModelNew(Model):
    def forward(self, s, keep):
        return s.masked_fill(keep, float("-inf")) * 0.5
