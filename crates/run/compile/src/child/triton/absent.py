# Stand-ins for packages that are not installed beside Triton. Nearly every source imports PyTorch,
# and many import more for their host code, but a kernel needs none of it. Names of a stand-in can
# be annotations, base classes, keys and decorators. Code that computes with one raises an error.

import importlib.abc
import importlib.util
import sys
import types

# Attributes that code reads to choose between platforms, by name.
KNOWN = {
    "__version__": "2.11.0",
    "torch.version.cuda": "13.0",
    "torch.version.hip": None,
    "torch.version.xpu": None,
}

# Results of functions of the stand-in, by path: facts about the device that the kernel is compiled
# for.
ANSWERS = {"torch.cuda.get_device_name": "NVIDIA"}


class NeedsPackage(Exception):
    """Raised when code computes with an absent package."""

    def __init__(self, name):
        package = name.partition(".")[0] if not name.startswith(".") else name.rpartition(".")[0]
        if package == "torch":
            super().__init__(f"`{name}` needs PyTorch, which is not installed beside Triton")
        else:
            super().__init__(
                f"`{name}` needs `{package}`, which is not installed here: provide the modules that a kernel uses in kernel.files"
            )


def decorated(given, named):
    """Returns the decorated object, if the call is that of a decorator without arguments."""
    from triton.runtime import KernelInterface

    kinds = (types.FunctionType, type, KernelInterface)
    return given[0] if len(given) == 1 and not named and isinstance(given[0], kinds) else None


class Absent(type):
    """Metaclass of the names in a stand-in, which are classes."""

    def __getattr__(cls, name):
        return attribute(cls.__dict__.get("stands_for", cls.__name__), name)

    def __call__(cls, *given, **named):
        if cls.__name__ == "is_available":
            return False
        path = cls.__dict__.get("stands_for", cls.__name__)
        if path in ANSWERS:
            return ANSWERS[path]
        from triton.language.core import base_value

        if any(isinstance(value, base_value) for value in given):
            # A kernel calls the name.
            cls.refuse()
        return decorated(given, named) or Result(path)

    def __getitem__(cls, _):
        # The annotation of a generic type is the type.
        return cls

    def refuse(cls, *_):
        raise NeedsPackage(cls.__dict__.get("stands_for", cls.__name__))

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __pow__ = __rpow__ = __neg__ = __iter__ = refuse
    __int__ = __float__ = __index__ = __lt__ = __le__ = __gt__ = __ge__ = refuse


class Result:
    """Result of a call of a stand-in: a decorator, or a value that cannot be used."""

    def __init__(self, name):
        self.__dict__["stands_for"] = name

    def __call__(self, *given, **named):
        return decorated(given, named) or self.refuse()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NeedsPackage(self.stands_for)

    def refuse(self, *_, **__):
        raise NeedsPackage(self.stands_for)

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


def absent_module(name):
    """A module whose names are placeholders. It is not of a subclass, since kernels of Triton can access only real modules."""
    module = types.ModuleType(name)

    def of_name(wanted):
        value = attribute(name, wanted)
        # Each name has one object, since names are used as keys and compared.
        setattr(module, wanted, value)
        return value

    module.__getattr__ = of_name
    return module


class AbsentPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports stand-ins for packages, and for all modules within them."""

    def __init__(self):
        self.packages = set()

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.packages:
            return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        return absent_module(spec.name)

    def exec_module(self, module):
        pass


ABSENT = AbsentPackages()


def path_of_absent(value):
    """Returns the path of a placeholder, or None for other values."""
    if isinstance(value, types.ModuleType):
        return value.__name__ if getattr(value.__spec__, "loader", None) is ABSENT else None
    return value.__dict__.get("stands_for") if isinstance(value, (Absent, Result)) else None


def stand_in_for_torch(arch):
    """Makes `import torch` succeed. Triton has already looked for it, and remembers that it is absent."""
    ANSWERS["torch.cuda.get_device_capability"] = divmod(arch, 10)
    if importlib.util.find_spec("torch") is None:
        ABSENT.packages.add("torch")
    sys.meta_path.append(ABSENT)


def stand_in_for(error):
    """Makes the import of an absent package succeed. Returns False if the error has another cause."""
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or not package or package in ABSENT.packages:
        return False
    # The package is present if only one of its modules is missing.
    if package in sys.modules or importlib.util.find_spec(package) is not None:
        return False
    ABSENT.packages.add(package)
    return True
