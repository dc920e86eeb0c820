# A stand-in for PyTorch, where it is not installed beside Triton: nearly every source imports it, and a kernel needs
# none of it. Names of the stand-in can be annotations, base classes, keys and decorators. Whatever computes with one
# raises an error.

import importlib.abc
import importlib.util
import sys
import types

# Attributes that code looks at before it chooses between platforms, by their names.
KNOWN = {
    "__version__": "2.11.0",
    "torch.version.cuda": "13.0",
    "torch.version.hip": None,
    "torch.version.xpu": None,
}

# What functions of the stand-in return, by their paths: facts about the device that the kernel is compiled for.
ANSWERS = {"torch.cuda.get_device_name": "NVIDIA"}


class NeedsTorch(Exception):
    """Code computes with PyTorch."""

    def __init__(self, name):
        super().__init__(f"`{name}` needs PyTorch, which is not installed beside Triton")


def decorated(given, named):
    """What is decorated, where a call is one of a decorator without arguments."""
    is_decorator = len(given) == 1 and not named and isinstance(given[0], (types.FunctionType, type))
    return given[0] if is_decorator else None


class Absent(type):
    """The type of the stand-in's names, which are classes."""

    def __getattr__(cls, name):
        return attribute(cls.__dict__.get("stands_for", cls.__name__), name)

    def __call__(cls, *given, **named):
        if cls.__name__ == "is_available":
            return False
        path = cls.__dict__.get("stands_for", cls.__name__)
        if path in ANSWERS:
            return ANSWERS[path]
        return decorated(given, named) or Result(path)


class Result:
    """What a call of the stand-in returns: a decorator, or a value that cannot be used."""

    def __init__(self, name):
        self.__dict__["stands_for"] = name

    def __call__(self, *given, **named):
        return decorated(given, named) or self.refuse()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NeedsTorch(self.stands_for)

    def refuse(self, *_, **__):
        raise NeedsTorch(self.stands_for)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __matmul__ = refuse
    __getitem__ = __setitem__ = __iter__ = __len__ = __bool__ = __int__ = __float__ = __index__ = refuse
    __lt__ = __le__ = __gt__ = __ge__ = __enter__ = refuse

    def __exit__(self, *_):
        return False


def attribute(owner, name):
    path = f"{owner}.{name}"
    if name in KNOWN or path in KNOWN:
        return KNOWN.get(path, KNOWN.get(name))
    if name.startswith("__"):
        raise AttributeError(name)
    return Absent(name, (), {"stands_for": path, "__module__": owner})


class TorchModule(types.ModuleType):
    def __getattr__(self, name):
        value = attribute(self.__name__, name)
        # One object for each name: names are keys, and are compared.
        setattr(self, name, value)
        return value


class TorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the stand-in as `torch`, and any module within it."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        return TorchModule(spec.name)

    def exec_module(self, module):
        pass


def stand_in_for_torch(arch):
    """Has `import torch` succeed. Triton itself has looked for it already, and remembers that it was not there."""
    ANSWERS["torch.cuda.get_device_capability"] = divmod(arch, 10)
    if importlib.util.find_spec("torch") is None:
        sys.meta_path.append(TorchFinder())
