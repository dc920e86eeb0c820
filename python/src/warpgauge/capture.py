"""A function with what it uses, in the form that is sent to a server: sources, names of modules, and data.

Nothing is executed to find this out. Functions and classes of the user are sent as source, those of libraries as
names, and everything else as data. Objects are pickled only if the caller allows that.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
import inspect
import os
import symtable
import sys
import sysconfig
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from .errors import ArgumentError
from .sources import closure_of, source_of
from .values import NotData, ValueWriter

# Objects that are bound to this process, with alternatives.
_BOUND_HERE = {
    "socket.socket": "open the connection where it is used; functions on a server have no network",
    "io.TextIOWrapper": "read the file first, and pass what is in it",
    "io.BufferedReader": "read the file first, and pass what is in it",
    "io.BufferedWriter": "return what is to be written, and write it here",
    "io.BufferedRandom": "read the file first, and pass what is in it",
    "io.FileIO": "read the file first, and pass what is in it",
    "builtins.generator": "make a list of it first",
    "thread.lock": "iterations share nothing, so that they need none",
    "thread.RLock": "iterations share nothing, so that they need none",
    "subprocess.Popen": "functions on a server start no programs",
}

Source = Callable[[ast.FunctionDef], tuple[ast.FunctionDef, Mapping[str, object]]]


class Capture:
    """The objects that a function needs, each of them once."""

    def __init__(self, pickles: bool = False) -> None:
        self.objects: list[dict[str, Any]] = []
        self.writer = ValueWriter(other=self._other)
        self.pickled = False
        self.changes_globals: list[str] = []
        self._pickles = pickles
        self._known: dict[int, int] = {}
        # The reference keeps each object alive, so that no other object gets an address in `_known`.
        self._kept: list[object] = []

    def tree(self, value: object, place: str) -> Any:
        """Returns the tree of a value. Raises `ArgumentError` for a part that cannot be sent."""
        try:
            return self.writer.tree(value, place)
        except NotData as error:
            raise ArgumentError(f"cannot send {error}") from None

    def packed(self, root: Mapping[str, Any]) -> bytes:
        """Returns the program, with these trees beside its objects."""
        return self.writer.packed({"objects": self.objects, **root})

    def entry(self, function: object, change: Source | None = None) -> list[Any]:
        """Returns the tree of the function that is called. `change` may replace its definition."""
        own = _function_of(function)
        if own is None:
            if not callable(function):
                raise ArgumentError(f"{function!r} is no function")
            found: list[Any] = self.tree(function, "the function")
            if not isinstance(found, list) or found[0] != "o":
                raise ArgumentError(f"{function!r} is no function that can be sent")
            return found
        try:
            return self._by_source(own, change)
        except NotData as error:
            if change is None and self._pickles:
                return self._pickle(own, "the function")
            raise ArgumentError(f"cannot send {error}") from None

    def _other(self, value: Any, place: str) -> Any:
        if id(value) in self._known:
            return ["o", self._known[id(value)]]
        kind = f"{type(value).__module__.lstrip('_')}.{type(value).__qualname__}"
        if kind in _BOUND_HERE:
            raise NotData(f"{place}, a {kind}: {_BOUND_HERE[kind]}")
        if isinstance(value, ModuleType):
            if _is_library(value.__name__):
                return self._add(value, {"kind": "module", "name": value.__name__})
            raise NotData(f"{place}, the module {value.__name__}, which is one's own: pass what is needed of it")
        named = _named_in_library(value)
        if named is not None:
            return self._add(value, {"kind": "attribute", "module": named[0], "name": named[1]})
        try:
            function = _function_of(value)
            if function is not None:
                return self._by_source(function)
            if isinstance(value, type):
                return self._class(value)
            if _is_plain(value):
                return self._instance(value, place)
        except NotData as error:
            if not self._pickles:
                raise NotData(f"{place}: {error}") from None
        if self._pickles:
            return self._pickle(value, place)
        raise NotData(
            f"{place}, of type {type(value).__module__}.{type(value).__qualname__}: only data, functions, classes and "
            "modules travel by themselves; make it within the function, or allow pickled objects "
            "(`configure(pickles=True)`), which the server must allow too"
        )

    def _add(self, value: object, described: dict[str, Any]) -> list[Any]:
        self._known[id(value)] = len(self.objects)
        self._kept.append(value)
        self.objects.append(described)
        return ["o", self._known[id(value)]]

    def _pickle(self, value: object, place: str) -> list[Any]:
        import pickle

        try:
            data = pickle.dumps(value, protocol=4)
            if b"__main__" in data:
                raise pickle.PicklingError("it is defined in __main__, which is another one there")
        except Exception as plain:
            try:
                import cloudpickle
            except ImportError:
                raise NotData(f"{place}: {plain}; with cloudpickle installed here and there it may be") from None
            try:
                data = cloudpickle.dumps(value, protocol=4)
            except Exception as error:
                raise NotData(f"{place}: {error}") from None
        self.pickled = True
        return self._add(value, {"kind": "pickle", "data": self.writer.tree(data)})

    def _by_source(self, function: FunctionType, change: Source | None = None) -> list[Any]:
        if id(function) in self._known:
            return ["o", self._known[id(function)]]
        found = source_of(function)
        definition = found.definition
        more: Mapping[str, object] = {}
        if change is not None:
            definition, more = change(definition)
            if any(isinstance(node, ast.Name) and node.id == definition.name for node in ast.walk(definition)):
                # A recursive call means the original function.
                definition = copy.copy(definition)
                definition.name = f"_{definition.name}_in_parts"
        described: dict[str, Any] = {"kind": "source", "name": definition.name}
        # It is registered before its globals are examined, because it may be one of them, in its original form.
        reference = self._add(described if change is not None else function, described)
        found.describe(described, definition)
        self._look_for_globals(definition)
        visible = {**function.__globals__, **closure_of(function)}
        described["globals"] = {
            name: tree for name, tree in self._globals(described["source"], visible, function.__name__)
        }
        described["globals"].update({name: self.writer.tree(value) for name, value in more.items()})
        for name, value in (("defaults", function.__defaults__), ("kwdefaults", function.__kwdefaults__)):
            place = f"a default of {function.__name__}"
            described[name] = None if value is None else self.writer.tree(value, place)
        return reference

    def _class(self, cls: type) -> list[Any]:
        found = source_of(cls)
        described: dict[str, Any] = {"kind": "source", "name": cls.__name__}
        reference = self._add(cls, described)
        found.describe(described, found.definition)
        self._look_for_globals(found.definition)
        visible = dict(vars(sys.modules.get(cls.__module__, builtins)))
        described["globals"] = {name: tree for name, tree in self._globals(described["source"], visible, cls.__name__)}
        return reference

    def _instance(self, value: Any, place: str) -> list[Any]:
        described: dict[str, Any] = {"kind": "instance"}
        # It is registered before its attributes are examined, because they may refer to it.
        reference = self._add(value, described)
        described["class"] = self.writer.tree(type(value), f"the class of {place}")
        described["state"] = {
            name: self.writer.tree(attribute, f"attribute `{name}` of {place}")
            for name, attribute in vars(value).items()
        }
        return reference

    def _look_for_globals(self, definition: ast.AST) -> None:
        for node in ast.walk(definition):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                self.changes_globals.extend(node.names)

    def _globals(self, source: str, visible: Mapping[str, Any], name: str) -> Any:
        for used in names_of(source):
            if used not in visible:
                # The name is a builtin, or the server reports that it is not defined.
                continue
            value, place = visible[used], f"`{used}`, which {name} uses"
            if isinstance(value, ModuleType) and not _is_library(value.__name__):
                yield used, self._namespace(value, source, used)
            else:
                yield used, self.writer.tree(value, place)

    def _namespace(self, module: ModuleType, source: str, name: str) -> list[Any]:
        """Describes a module of the user, with those of its attributes that a source uses."""
        used = {
            node.attr
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
        }
        described: dict[str, Any] = {"kind": "namespace", "name": module.__name__}
        index = len(self.objects)
        self.objects.append(described)
        described["globals"] = {
            attribute: self.writer.tree(getattr(module, attribute), f"`{name}.{attribute}`")
            for attribute in sorted(used)
            if hasattr(module, attribute)
        }
        return ["o", index]


def names_of(source: str) -> list[str]:
    """Returns the names that a source reads from outside itself."""
    found: set[str] = set()

    def look(table: symtable.SymbolTable) -> None:
        outermost = table.get_type() == "module"
        for symbol in table.get_symbols():
            if outermost:
                if symbol.is_referenced() and not symbol.is_assigned():
                    found.add(symbol.get_name())
            elif symbol.is_global():
                found.add(symbol.get_name())
        for child in table.get_children():
            look(child)

    table = symtable.symtable(source, "caller", "exec")
    look(table)
    own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_namespace()}
    return sorted(found - own)


def _function_of(value: Any) -> FunctionType | None:
    """Returns the function inside a decorator's wrapper."""
    inner = getattr(value, "_warpgauge_function", value)
    if not isinstance(inner, FunctionType):
        wrapped = getattr(inner, "__wrapped__", None)
        if wrapped is None or isinstance(inner, type):
            return None
        inner = wrapped
    try:
        inner = inspect.unwrap(inner)
    except ValueError:
        return None
    return inner if isinstance(inner, FunctionType) else None


def _is_library(module: str) -> bool:
    """Returns whether a module belongs to Python or is installed, so that a server may have it."""
    if module.partition(".")[0] in sys.stdlib_module_names and module != "__main__":
        return True
    file = getattr(sys.modules.get(module), "__file__", None)
    if module == "__main__":
        return False
    if file is None:
        spec = getattr(sys.modules.get(module), "__spec__", None)
        return spec is not None and (spec.origin in ("built-in", "frozen") or bool(spec.submodule_search_locations))
    places = [sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")]
    return any(file.startswith(f"{place}{os.sep}") for place in places) or _installed(module, file)


def _installed(module: str, file: str) -> bool:
    """Returns whether a module is in a directory of installed packages, which also has their metadata."""
    place = os.path.dirname(file)
    deeper = module.count(".") + (os.path.basename(file).startswith("__init__."))
    for _ in range(deeper):
        place = os.path.dirname(place)
    return _has_packages(place)


@functools.cache
def _has_packages(place: str) -> bool:
    try:
        return any(name.endswith((".dist-info", ".egg-info")) for name in os.listdir(place))
    except OSError:
        return False


# Attributes that decide how an instance is created, or what its state is.
_OF_INSTANCES = ("__new__", "__slots__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__",
                 "__getnewargs__", "__getnewargs_ex__")  # fmt: skip


def _is_plain(value: Any) -> bool:
    """Returns whether the state of an instance is its attributes. Its classes must be the user's and must not change
    that."""
    own = type(value).__mro__[:-1]
    return (
        type(type(value)) is type
        and all(not _is_library(cls.__module__) for cls in own)
        and not any(name in vars(cls) for cls in own for name in _OF_INSTANCES)
    )


def _named_in_library(value: Any) -> tuple[str, str] | None:
    """Returns module and name of an object that a library defines."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    if isinstance(value, BuiltinFunctionType) and not isinstance(module, str):
        module = getattr(value.__self__, "__name__", None)
    if not isinstance(name, str) or not isinstance(module, str) or "<" in name or not _is_library(module):
        return None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return (module, name) if found is value else None
