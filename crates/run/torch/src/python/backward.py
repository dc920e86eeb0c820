# Forward and backward pass in one call. The judge sends the gradients of the outputs after the
# other arguments.


class Backward:
    """Calls a target, and computes gradients from its outputs."""

    def __init__(self, torch, values, target, upstream):
        self.torch, self.values, self.target = torch, values, target
        self.upstream = upstream
        values.most = MOST_TENSORS + MOST_PARAMETERS

    def drawn(self):
        """Draws upstream gradients from the same seed, if the submission makes its arguments."""
        like = ((one["shape"], self.values.dtypes[one["dtype"]]) for one in self.upstream)
        return [self.torch.randn(shape).to(dtype) for shape, dtype in like]

    def call(self, *arguments):
        torch = self.torch
        split = len(arguments) - len(self.upstream)
        given, upstream = arguments[:split], arguments[split:]
        inputs, parameters = self.leaves(given), self.parameters()
        if not inputs and not parameters:
            raise Refused(
                "no_gradient",
                "none of its inputs can have a gradient: it receives no floating-point tensor, and has no "
                "parameter that requires a gradient; omit `metadata.backward`",
            )
        for tensor in [*inputs.values(), *parameters.values()]:
            tensor.grad = None
        for tensor in inputs.values():
            tensor.requires_grad_(True)
        with torch.enable_grad():
            returned = self.target.call(*given)
            outputs, begin = self.pairs(returned, upstream)
            torch.autograd.backward(outputs, begin)
        return {
            "returned": returned,
            "gradients": {"inputs": gradients(torch, inputs), "parameters": gradients(torch, parameters)},
        }

    def leaves(self, value):
        """Returns the floating-point tensors in a value, by their paths."""
        found = tensors_of(self.torch, list(value) if isinstance(value, tuple) else value, "")
        return {place: tensor for place, tensor in found if tensor.is_floating_point()}

    def parameters(self):
        model = self.target.model
        if not isinstance(model, self.torch.nn.Module):
            return {}
        return {name: p for name, p in model.named_parameters() if p.requires_grad}

    def pairs(self, returned, upstream):
        """Returns the outputs and their upstream gradients, matched by name, by path, or in order."""
        leaves = self.leaves(returned)
        wanted = [one["place"] for one in self.upstream]
        for places in (["." + place for place in wanted], wanted):
            if all(place in leaves for place in places):
                chosen = [leaves[place] for place in places]
                break
        else:
            chosen = list(leaves.values())
        if len(chosen) != len(wanted):
            raise Refused(
                "unusable_output",
                f"it returned {len(chosen)} floating-point tensors, but upstream gradients are given for "
                f"{len(wanted)}",
            )
        able = [(output, begin) for output, begin in zip(chosen, upstream) if output.requires_grad]
        if not able:
            raise Refused(
                "no_gradient",
                "its outputs have no gradient: no output is a floating-point tensor that PyTorch knows to "
                "depend on an input or a parameter (`grad_fn`); compute it with PyTorch's operations or in a "
                "torch.autograd.Function, or omit `metadata.backward`",
            )
        return [output for output, _ in able], [begin for _, begin in able]


def gradients(torch, leaves):
    """Returns the gradients; zeros for a tensor that the outputs do not depend on."""
    return {
        name: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for name, leaf in leaves.items()
    }


def tensors_of(torch, value, place):
    if isinstance(value, torch.Tensor):
        yield place, value
        return
    kind, _, parts = parts_of(value) or ("", "", [])
    for index, (key, item) in enumerate(parts):
        named = kind in ("dict", "dataclass")
        yield from tensors_of(torch, item, f"{place}.{key}" if named else f"{place}[{index}]")
