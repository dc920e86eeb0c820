# Values with parts: how they are taken apart for the judge, and assembled again with other tensors.

import collections
import dataclasses


def parts_of(value):
    """Returns the kind of a structure, its class name, and its parts by their keys; `None` if it is not a
    structure."""
    if isinstance(value, tuple) and isinstance(getattr(value, "_fields", None), tuple):
        return "namedtuple", type(value).__name__, list(zip(value._fields, value))
    if isinstance(value, tuple):
        return "tuple", "", list(enumerate(value))
    if isinstance(value, list):
        return "list", "", list(enumerate(value))
    if isinstance(value, dict):
        return "dict", "", list(value.items())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return "dataclass", type(value).__name__, [(name, getattr(value, name)) for name in names]
    return None


def with_parts(kind, name, parts, module):
    """Creates a structure of this kind. A class that the submission's module lacks is replaced by a generated
    one."""
    keys, values = [key for key, _ in parts], [value for _, value in parts]
    if kind == "list":
        return values
    if kind == "tuple":
        return tuple(values)
    if kind == "dict":
        return dict(parts)
    if kind == "numpy":
        return values[0].numpy()
    if kind == "complex":
        return sys.modules["torch"].view_as_complex(values[0])
    own = (module or {}).get(name)
    if kind == "namedtuple":
        if not (isinstance(own, type) and list(getattr(own, "_fields", ())) == keys):
            own = collections.namedtuple(name, keys)
        return own._make(values)
    if not (dataclasses.is_dataclass(own) and {field.name for field in dataclasses.fields(own)} >= set(keys)):
        own = dataclasses.make_dataclass(name, keys)
    # The constructor is not called, because it may compute attributes that are among the parts.
    made = object.__new__(own)
    for key, value in parts:
        object.__setattr__(made, key, value)
    return made


def mapped(value, leaf, module):
    """Returns a structure with `leaf` applied to each value that has no parts."""
    parts = parts_of(value)
    if parts is None:
        return leaf(value)
    kind, name, items = parts
    return with_parts(kind, name, [(key, mapped(item, leaf, module)) for key, item in items], module)


def array_in(value):
    """Returns whether a value is a NumPy array. Works even if NumPy is not imported."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)
