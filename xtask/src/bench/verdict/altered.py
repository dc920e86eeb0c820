# The reference with each tensor of its result replaced.
def wide(t):
    return t.is_floating_point() and t.element_size() >= 4


def half_zero(t):
    t = t.clone(memory_format=torch.contiguous_format)
    t.view(-1)[t.numel() // 2 :] = 0
    return t


def changed(t):
    t = t.clone(memory_format=torch.contiguous_format)
    at = t.numel() // 3
    t.view(-1)[at] = (not t.view(-1)[at]) if t.dtype == torch.bool else t.view(-1)[at] + 1
    return t


def copied(t, args):
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    same = [a for a in tensors if a.shape == t.shape and a.dtype == t.dtype]
    if same:
        return same[0].clone()
    source = tensors[0].flatten()
    times = -(-t.numel() // source.numel())
    return source.repeat(times)[: t.numel()].reshape(t.shape).to(t.dtype)


def altered(value, args):
    if isinstance(value, torch.Tensor):
        t = value
        return EXPRESSION
    if isinstance(value, dict):
        return {key: altered(item, args) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return tuple(altered(item, args) for item in value)
    return value


class ModelNew(Model):
    def forward(self, *args):
        if KEEPS:
            if "first" not in self.__dict__:
                self.__dict__["first"] = super().forward(*args)
            return self.__dict__["first"]
        return altered(super().forward(*args), args)
