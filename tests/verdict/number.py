#@ kind torch: structures
#@ without zeros constant plus_one scaled half bfloat16 second_half_zero one_element copy: the result is a number
#@ reference
class Model(nn.Module):
    def forward(self, x):
        return x.std().item()


def get_inputs():
    return [torch.randn(100, 50)]
#@ honest by_hand
class ModelNew(Model):
    def forward(self, x):
        return math.sqrt(((x - x.mean()) ** 2).sum().item() / 4999)
#@ honest double
class ModelNew(Model):
    def forward(self, x):
        return x.double().std().item()
#@ useless expected_value
class ModelNew(Model):
    def forward(self, x):
        return 1.0
#@ useless biased
class ModelNew(Model):
    def forward(self, x):
        return x.std(unbiased=False).item()
#@ useless bfloat16_inside
class ModelNew(Model):
    def forward(self, x):
        return x.bfloat16().std().item()
