# Finds inputs for a submission that does not define them. Shapes come from attributes of its
# layers, or from a fixed list. They are tried on meta tensors until the submission accepts them.
# docs/torch.md has the rules.

import copy
import itertools

# Maximum number of combinations to try, on meta tensors and then on real tensors.
MOST_TRIES = 96

# Shapes to try when no layer suggests one, in this order.
LADDER = ((256, 256), (8, 32, 256), (8, 16, 32, 32), (8, 3, 64, 64), (65536,), (4, 4, 16, 16, 16))

# Upper bound of integer inputs, so low that an index fits most shapes.
INDEX_BOUND = 256

# Layers whose input shape follows from an attribute: class names, the attribute, and shapes in which -1 is
# replaced by its value.
LAYERS = (
    ("Linear Bilinear LazyLinear", "in_features", ((64, -1), (8, 32, -1))),
    ("MultiheadAttention", "embed_dim", ((32, 8, -1), (32, -1))),
    ("RNN LSTM GRU", "input_size", ((32, 8, -1),)),
    ("RNNCell LSTMCell GRUCell", "input_size", ((64, -1),)),
    ("Conv1d ConvTranspose1d", "in_channels", ((8, -1, 256),)),
    ("Conv2d ConvTranspose2d", "in_channels", ((8, -1, 32, 32), (2, -1, 224, 224))),
    ("Conv3d ConvTranspose3d", "in_channels", ((2, -1, 16, 16, 16),)),
    ("BatchNorm1d InstanceNorm1d", "num_features", ((64, -1), (8, -1, 256))),
    ("BatchNorm2d InstanceNorm2d", "num_features", ((8, -1, 32, 32),)),
    ("BatchNorm3d InstanceNorm3d", "num_features", ((2, -1, 16, 16, 16),)),
    ("GroupNorm", "num_channels", ((8, -1, 32, 32), (8, -1, 256))),
)


class Candidate:
    """A tensor to try as an input, and the reason for its shape."""

    def __init__(self, shape, why, bound=None):
        self.shape, self.why, self.bound = tuple(shape), why, bound

    def made(self, torch, device):
        if self.bound is not None:
            if device == "meta":
                return torch.empty(self.shape, dtype=torch.int64, device="meta")
            return torch.randint(0, self.bound, self.shape, device=device)
        return torch.randn(self.shape, device=device)

    def told(self, name):
        init = {"kind": "randn"}
        if self.bound is not None:
            init = {"kind": "randint", "low": 0, "high": self.bound}
        dtype = "float32" if self.bound is None else "int64"
        return {"name": name, "dtype": dtype, "shape": list(self.shape), "init": init}


def of_layer(name, layer):
    """Returns inputs that fit one layer."""
    kind = type(layer).__name__
    why = f"the layer `{name}` ({kind})"
    if kind in ("Embedding", "EmbeddingBag"):
        return [Candidate((8, 32), why, layer.num_embeddings)]
    if kind in ("LayerNorm", "RMSNorm"):
        return [Candidate((8, 32, *layer.normalized_shape), why)]
    for kinds, attribute, shapes in LAYERS:
        if kind in kinds.split():
            size = getattr(layer, attribute)
            found = [tuple(size if extent == -1 else extent for extent in s) for s in shapes]
            if getattr(layer, "batch_first", False) and len(found[0]) == 3:
                found[0] = (found[0][1], found[0][0], found[0][2])
            return [Candidate(shape, why) for shape in found]
    return []


def candidates_for(torch, target):
    found = []
    if isinstance(target.model, torch.nn.Module):
        # Layers are listed in the order of their creation, which is mostly the order of use.
        for name, layer in itertools.islice(target.model.named_modules(), 256):
            found += of_layer(name, layer)
    why = "the ladder of shapes"
    found = found[:12] + [Candidate(shape, why) for shape in LADDER]
    return found + [Candidate((8, 32), why, INDEX_BOUND)]


# Values of parameters that are not tensors, by annotation.
NUMBERS = {int: 2, float: 0.5, bool: True, "int": 2, "float": 0.5, "bool": True}


def parameters_of(target):
    """Returns the names of the required parameters, with the values of those that are numbers."""
    wanted = []
    for parameter in target.signature().parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is not parameter.empty:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            raise no_suggestion(f"`{parameter.name}` can be passed only by name")
        if parameter.annotation in NUMBERS:
            wanted.append((parameter.name, NUMBERS[parameter.annotation]))
        else:
            wanted.append((parameter.name, None))
    return wanted


def no_suggestion(why):
    return Refused(
        "inputs_failed",
        f"no inputs are given, and none can be tried: {why}. Define `get_inputs()`, or give `io.args`",
    )


def raised_by_all(failures):
    """Returns the error of a submission that accepts no inputs: its most frequent exception, with the
    traceback. An exception that is the same for all inputs is the submission's own; others may follow from the inputs."""
    counts = {}
    for failure in failures:
        counts[failure.message] = counts.get(failure.message, 0) + 1
    most = max(counts, key=counts.get)
    shown = next(failure for failure in failures if failure.message == most)
    which = "this exception" if len(counts) == 1 else "an exception, most often this one,"
    shown.message = (
        f"{shown.message}. No inputs are given, and the submission raises {which} with each of the "
        f"{len(failures)} that were tried. If it needs others, define `get_inputs()`, or give `io.args`"
    )
    if len(counts) > 1:
        shown.code = "inputs_failed"
    return shown


def assignments(candidates, count):
    """Yields the same candidate for all parameters, and then mixtures of the first candidates."""
    for candidate in candidates:
        yield [candidate] * count
    if 1 < count <= 4:
        yield from map(list, itertools.product(candidates[:8], repeat=count))


def suggestion_for(torch, target, place):
    """Returns the first inputs that the submission accepts. `place`: the device that may have to hold them, or
    None."""
    try:
        wanted = parameters_of(target)
    except (TypeError, ValueError):
        raise no_suggestion("its signature cannot be read") from None
    tensors = [name for name, value in wanted if value is None]
    candidates = candidates_for(torch, target)
    # Some operations ignore the types of meta tensors, and all ignore their values. The device
    # comes last, because a failed call may make it unusable for this process.
    rounds = [(("meta", "cpu"), "tensors without memory, then on real ones"), (("cpu",), "real ones")]
    if place is not None:
        rounds.append(((place,), "real ones on the device"))
    for devices, how in rounds:
        # An exception that only tensors without memory cause is not reported.
        failures = []
        tries = itertools.islice(assignments(candidates, len(tensors)), MOST_TRIES)
        for chosen in tries:
            try:
                for device in devices:
                    takes(torch, target, wanted, chosen, device)
            except Exception as error:
                failures.append(explained(error, "call_failed"))
                continue
            return told(wanted, chosen, how)
    raise raised_by_all(failures)


def takes(torch, target, wanted, chosen, device):
    """Calls a copy of the submission, and raises its exceptions."""
    made = (candidate.made(torch, device) for candidate in chosen)
    arguments = [next(made) if value is None else value for _, value in wanted]
    # A copy is called, because layers with running statistics would keep those of the trial inputs.
    model = copy.deepcopy(target.model)
    if device != "cpu" and isinstance(model, torch.nn.Module):
        model = model.to(device)
    function = target.function if target.cls is None else getattr(model, target.method)
    with torch.no_grad(), torch.device(device):
        function(*arguments)


def told(wanted, chosen, how):
    tensors = iter(chosen)
    arguments = []
    for name, value in wanted:
        if value is None:
            arguments.append(next(tensors).told(name))
        else:
            arguments.append({"name": name, "value": value})
    reasons = list(dict.fromkeys(candidate.why for candidate in chosen)) or ["no tensor is required"]
    return {"arguments": arguments, "rule": f"{' and '.join(reasons)}, tried on {how}"}
