# Descriptions of arguments and results for the judge: the locations of tensors, and the content of
# numbers and texts.

# Maximum number of tensors and numbers in one value.
MOST_TENSORS = 1024

# Maximum nesting depth of a value.
DEEPEST = 16

# Maximum length of a text in a value, characters.
LONGEST_TEXT = 4096


class Values:
    """Describes values, with functions of PyTorch that were looked up before a submission could replace
    them."""

    def __init__(self, torch):
        self.torch = torch
        # The device, if the fork has one.
        self.device = None
        # Descriptions of tensors on the device without their addresses, by type and shape.
        self.texts = {}
        self.most = MOST_TENSORS
        # Whether objects of PyTorch itself are described by name.
        self.naming = False
        # Whether structures are described with their kinds, so that they can be created again;
        # otherwise as lists and dictionaries.
        self.exact = False
        # The module's names, among which classes of structures are found.
        self.module = None
        # Tensors that must stay alive until the judge has read them: those of the last answer, and
        # the inputs.
        self.kept = self.kept_inputs = []
        # Addresses and sizes in bytes of described tensors on the device; `None` if they are not
        # collected.
        self.spans = None
        # Element types by their names in contracts.
        self.dtypes = {name: getattr(torch, name) for name in DTYPES if hasattr(torch, name)}
        self.dtypes["float8_e4m3"] = torch.float8_e4m3fn
        self.names = {dtype: name for name, dtype in self.dtypes.items()}
        self.as_subclass = torch.Tensor.as_subclass
        self.plain_types = (torch.Tensor, torch.nn.Parameter)
        self.without_overrides = torch._C.DisableTorchFunctionSubclass

    def told(self, value):
        self.begin()
        return self.told_too(value)

    def told_inputs(self, value):
        """Like `told`, but in a form from which another process can create the same values."""
        return self.told_sets([value])[0]

    def told_sets(self, sets):
        """Like `told_inputs`, for several sets of inputs, which stay alive until all are
        described."""
        self.exact = True
        self.begin()
        try:
            return [self.told_too(inputs) for inputs in sets]
        except Refused as refused:
            refused.code = "inputs_failed"
            refused.message = "`get_inputs` returns a value that cannot be passed on: " + refused.message
            raise
        finally:
            self.exact = False
            # The judge reads inputs after the call, too.
            self.kept_inputs = self.kept

    def begin(self):
        """Releases the tensors of the previous answer, which the judge has read."""
        self.kept = []

    def told_too(self, value):
        """Like `told`, but in the same answer as earlier values."""
        self.left = self.most
        return self.tree(value, 0)

    def text_of(self, value):
        """Like `told_too`, but returns JSON. For a plain tensor on the device this takes 4 µs instead of
        20, so that batches need not wait for it."""
        if type(value) is self.torch.Tensor and value.is_cuda and not value.is_complex():
            if value.data_ptr() in self.device.lent_range:
                value = self.own(value)
            key = (value.dtype, value.shape, value.stride(), value.layout)
            begin = self.texts.get(key)
            if begin is not None and not (value.is_neg() or value.is_conj()):
                address = value.data_ptr()
                if address:
                    self.note(value)
                    block, offset = self.device.where(address)
                    return f'{begin}"address": {offset}, "block": "{block}"}}}}'
            told = self.told_too(value)
            rest = {name: told["tensor"][name] for name in ("dtype", "shape", "strides")}
            if len(self.texts) < 256 and not value.is_quantized:
                self.texts[key] = '{"tensor": ' + json.dumps(rest)[:-1] + ", "
            return json.dumps(told)
        return json.dumps(self.told_too(value))

    def tree(self, value, depth):
        self.left -= 1
        if self.left < 0:
            raise Refused("unusable_output", f"it has more than {MOST_TENSORS} values")
        if depth > DEEPEST:
            raise Refused("unusable_output", f"values nest deeper than {DEEPEST}")
        if isinstance(value, self.torch.Tensor):
            if value.is_complex() and (self.exact or value.dtype not in self.names):
                return self.complex_parts(value)
            return {"tensor": self.described(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"value": self.scalar(value)}
        name = name_in(self.torch, value) if self.naming else None
        if name is not None:
            return {"value": {"object": name}}
        parts = parts_of(value)
        if parts is not None:
            return self.structure(*parts, depth + 1)
        if array_in(value):
            tree = {"tensor": self.described(self.of_array(value))}
            return {"record": ["numpy", "", [[0, tree]]]} if self.exact else tree
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.generic):
            return self.tree(value.item(), depth)
        raise Refused(
            "unusable_output",
            f"a value of type {type(value).__name__} cannot be judged: only tensors, arrays, numbers, texts, "
            "and lists, tuples, dictionaries and dataclasses of these can",
        )

    def structure(self, kind, name, parts, depth):
        """Describes a value with parts. Results are described only by paths, without their classes."""
        items = [(key, self.tree(item, depth)) for key, item in parts]
        if kind == "list" or not self.exact and kind in ("tuple", "namedtuple"):
            return {"list": [item for _, item in items]}
        if not self.exact:
            texts = [key if isinstance(key, str) else repr(key)[:LONGEST_TEXT] for key, _ in items]
            if len(set(texts)) != len(texts):
                raise Refused("unusable_output", "two keys of a dictionary have the same text: they cannot be judged")
            return {"dict": [[key, item] for key, (_, item) in zip(texts, items)]}
        if kind == "dict" and all(isinstance(key, str) for key, _ in items):
            return {"dict": [[key, item] for key, item in items]}
        for key, _ in items:
            if key is not None and not isinstance(key, (bool, int, float, str)):
                raise Refused(
                    "unusable_output",
                    f"a dictionary whose keys are of type {type(key).__name__} cannot be copied: only numbers "
                    "and texts can be keys",
                )
        return {"record": [kind, name, [[self.scalar(key), item] for key, item in items]]}

    def complex_parts(self, tensor):
        """Describes a complex tensor as its real and imaginary parts, side by side."""
        parts = self.torch.view_as_real(tensor.resolve_conj())
        self.kept.append(parts)
        tree = {"tensor": self.described(parts)}
        return {"record": ["complex", "", [[0, tree]]]} if self.exact else {"dict": [["complex", tree]]}

    def of_array(self, array):
        """Returns a tensor that shares an array's memory, or a copy if PyTorch has no such tensor (negative
        strides)."""
        try:
            return self.torch.from_numpy(array)
        except ValueError:
            tensor = self.torch.from_numpy(array.copy())
        except TypeError:
            raise Refused("unusable_output", f"an array of {array.dtype} cannot be judged") from None
        self.kept.append(tensor)
        return tensor

    def scalar(self, value):
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise Refused("unusable_output", "an integer of more than 64 bits cannot be judged")
        if isinstance(value, str) and len(value) > LONGEST_TEXT:
            raise Refused("unusable_output", f"a text of more than {LONGEST_TEXT} characters cannot be judged")
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if isinstance(value, float):
            # JSON parses a number without a point as an integer.
            return {"float": repr(value)}
        return value

    def described(self, tensor):
        """Describes the location of a tensor's elements. A tensor without storage is rejected."""
        torch = self.torch
        if type(tensor) not in self.plain_types:
            # A lazy tensor computes its elements here, in the measured time.
            with self.without_overrides():
                tensor = self.as_subclass(tensor, torch.Tensor)
            self.kept.append(tensor)
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise Refused(
                "unusable_output",
                f"a tensor of layout {tensor.layout} cannot be judged: convert it to a dense tensor (`to_dense()`)",
            )
        on_device = self.device is not None and tensor.is_cuda
        if not on_device and tensor.device.type != "cpu":
            where = "run on the CPU here" if self.device is None else "use only one device here"
            raise Refused(
                "unusable_output",
                f"a tensor on {tensor.device} cannot be judged: torch kernels {where}",
            )
        if tensor.dtype not in self.names:
            raise Refused("unusable_output", f"elements of type {tensor.dtype} cannot be judged")
        if tensor.is_neg() or tensor.is_conj():
            tensor = tensor.resolve_neg().resolve_conj()
            self.kept.append(tensor)
        if on_device and tensor.data_ptr() in self.device.lent_range:
            tensor = self.own(tensor)
        address = tensor.data_ptr()
        if address == 0 and tensor.numel() > 0:
            raise Refused("unusable_output", "a tensor without memory cannot be judged")
        described = {
            "address": address,
            "dtype": self.names[tensor.dtype],
            "shape": list(tensor.shape),
            "strides": list(tensor.stride()),
        }
        if on_device:
            self.note(tensor)
            # A tensor without elements has no block.
            described["block"], described["address"] = (
                self.device.where(address) if address else ("", 0)
            )
        return described

    def note(self, tensor):
        """Records the address and size of a tensor on the device, if it has elements."""
        if self.spans is not None and tensor.numel() > 0:
            last = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
            self.spans.append((tensor.data_ptr(), (last + 1) * tensor.element_size()))

    def own(self, tensor):
        """Returns a copy in this process's memory. A call may return an argument, which is in the judge's
        memory."""
        tensor = tensor.clone()
        self.kept.append(tensor)
        return tensor

    def allocated(self, tensor):
        dtype = self.dtypes[tensor["dtype"]]
        if "strides" in tensor:
            return self.torch.empty_strided(tensor["shape"], tensor["strides"], dtype=dtype)
        return self.torch.empty(tensor["shape"], dtype=dtype)

    def zeros(self, tensor):
        return self.torch.zeros(tensor["shape"], dtype=self.dtypes[tensor["dtype"]])

    def made(self, tree, tensor, structure=with_parts):
        """Returns the value of a tree. `tensor` creates tensors from their descriptions; `structure` assembles
        values with parts."""
        ((kind, inner),) = tree.items()
        if kind == "tensor":
            return tensor(inner)
        if kind == "value":
            return self.made_scalar(inner)
        if kind == "record":
            kind, name, items = inner
            items = [(self.made_scalar(key), item) for key, item in items]
        else:
            name, items = "", list(enumerate(inner)) if kind == "list" else inner
        parts = [(key, self.made(item, tensor, structure)) for key, item in items]
        return structure(kind, name, parts, self.module)

    def made_scalar(self, value):
        if not isinstance(value, dict):
            return value
        return float(value["float"]) if "float" in value else object_in(self.torch, value["object"])

    def plain(self, value):
        """Returns the tree of a value without tensors, such as a constructor's arguments; `None` for other
        values."""
        self.naming = self.exact = True
        try:
            tree = self.told(value)
        except Refused:
            return None
        finally:
            self.naming = self.exact = False
        return None if holds_tensor(tree) else tree


def name_in(torch, value):
    """Returns the qualified name of a type, function or class of PyTorch; `None` for anything else."""
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value)
    name = getattr(value, "__name__", None)
    if not isinstance(name, str):
        return None
    places = {"torch": torch, "torch.nn.functional": torch.nn.functional, "torch.nn": torch.nn}
    found = (place for place, names in places.items() if getattr(names, name, None) is value)
    return next((f"{place}.{name}" for place in found), None)


def object_in(torch, name):
    """Returns the object of PyTorch with this name."""
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def holds_tensor(tree):
    ((kind, inner),) = tree.items()
    if kind == "list":
        return any(holds_tensor(item) for item in inner)
    if kind in ("dict", "record"):
        return any(holds_tensor(item) for _, item in (inner if kind == "dict" else inner[2]))
    return kind == "tensor"


DTYPES = (
    "float64 float32 float16 bfloat16 float8_e5m2 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "complex64 complex128 float8_e8m0fnu float4_e2m1fn_x2"
).split()
