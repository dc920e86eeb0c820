#@ kind torch: data movement
#@ reference
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 16)

    def forward(self, at):
        return self.table(at).mean(1)


def get_inputs():
    return [torch.randint(0, 50, (20, 7))]
#@ honest bag
class ModelNew(Model):
    def forward(self, at):
        return F.embedding_bag(at, self.table.weight, mode="mean")
#@ honest counts
class ModelNew(Model):
    def forward(self, at):
        return F.one_hot(at, 50).float().sum(1) @ self.table.weight / 7
#@ useless first_only
class ModelNew(Model):
    def forward(self, at):
        return self.table(at[:, 0])
#@ useless sum
class ModelNew(Model):
    def forward(self, at):
        return self.table(at).sum(1)
