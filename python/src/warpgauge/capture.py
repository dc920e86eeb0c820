"""A function with what it uses, as it is sent to a server: sources, names of modules, and data.

Nothing is executed to find out. Functions and classes of one's own go by their source, what libraries define by
its name, everything else as data; pickled objects are made only where the caller wants that.
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
import textwrap
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from .errors import ArgumentError
from .values import NotData, ValueWriter

# What cannot be anywhere but here, with what to do instead.
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
    """Objects that a function needs, each once."""

    def __init__(self, pickles: bool = False) -> None:
        self.objects: list[dict[str, Any]] = []
        self.writer = ValueWriter(other=self._other)
        self.pickled = False
        self.changes_globals: list[str] = []
        self._pickles = pickles
        self._known: dict[int, int] = {}
        # Kept so that no other object gets an address that stands in `_known`.
        self._kept: list[object] = []

    def tree(self, value: object, place: str) -> Any:
        """The tree of a value; an `ArgumentError` says what of it cannot be sent."""
        try:
            return self.writer.tree(value, place)
        except NotData as error:
            raise ArgumentError(f"cannot send {error}") from None

    def packed(self, root: Mapping[str, Any]) -> bytes:
        """The program, with these trees beside its objects."""
        return self.writer.packed({"objects": self.objects, **root})

    def entry(self, function: object, change: Source | None = None) -> list[Any]:
        """The tree of the function that is called, whose definition may be changed before."""
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
                # What calls itself means the function as it was.
                definition = copy.copy(definition)
                definition.name = f"_{definition.name}_in_parts"
        described: dict[str, Any] = {"kind": "source", "name": definition.name}
        # Known before its globals are looked at: it may be one of them, as it was.
        reference = self._add(described if change is not None else function, described)
        found.describe(described, definition)
        self._look_for_globals(definition)
        visible = {**function.__globals__, **_closure_of(function)}
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

    def _look_for_globals(self, definition: ast.AST) -> None:
        for node in ast.walk(definition):
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                self.changes_globals.extend(node.names)

    def _globals(self, source: str, visible: Mapping[str, Any], name: str) -> Any:
        for used in names_of(source):
            if used not in visible:
                # A builtin; or what the server will say is not defined.
                continue
            value, place = visible[used], f"`{used}`, which {name} uses"
            if isinstance(value, ModuleType) and not _is_library(value.__name__):
                yield used, self._namespace(value, source, used)
            else:
                yield used, self.writer.tree(value, place)

    def _namespace(self, module: ModuleType, source: str, name: str) -> list[Any]:
        """A module of one's own, with those of its attributes that a source uses."""
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


class FoundSource:
    """The definition of a function or a class, with where it stands."""

    def __init__(self, text: str, file: str, first_line: int, definition: Any) -> None:
        self.text, self.file, self.first_line, self.definition = text, file, first_line, definition

    def describe(self, described: dict[str, Any], definition: Any) -> None:
        """Writes down the definition, which may have been changed, and which lines it has here."""
        source = ast.unparse(ast.Module([definition], []))
        lines = [self.first_line] * (source.count("\n") + 1)
        # Both trees have the same nodes, in the same order.
        written = ast.parse(source).body[0]
        for new, old in zip(ast.walk(written), ast.walk(definition), strict=False):
            if type(new) is type(old) and isinstance(new, (ast.stmt, ast.expr)) and hasattr(old, "lineno"):
                lines[new.lineno - 1] = self.first_line + old.lineno - 1
        described.update(source=source, lines=lines, shown=self.text, first_line=self.first_line, file=self.file)


def source_of(thing: FunctionType | type) -> FoundSource:
    """Its source, without annotations, defaults and the decorator `cluster`; raises `NotData` where there is none."""
    try:
        lines, first = inspect.getsourcelines(thing)
        text = textwrap.dedent("".join(lines))
    except (OSError, TypeError):
        raise NotData(f"{thing.__name__}, whose source is not there: define it in a file or a notebook") from None
    file = os.path.basename(inspect.getsourcefile(thing) or "?")
    if isinstance(thing, FunctionType) and thing.__name__ == "<lambda>":
        return FoundSource(text, file, first, _lambda(thing, text))
    try:
        definition = ast.parse(text).body[0]
    except (SyntaxError, IndexError):
        raise NotData(f"{thing.__name__}, whose source does not stand alone") from None
    if isinstance(definition, (ast.AsyncFunctionDef, ast.FunctionDef)) and inspect.isgeneratorfunction(thing):
        pass
    elif isinstance(definition, ast.AsyncFunctionDef):
        raise NotData(f"{thing.__name__}, which is `async`: functions on a server are plain ones")
    _strip(definition, thing)
    return FoundSource(text, file, max(first, 1), definition)


def _strip(definition: Any, thing: Any) -> None:
    for node in ast.walk(definition):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
    if not isinstance(definition, ast.FunctionDef):
        return
    # Values that they have are sent.
    nothing = [ast.Constant(None, lineno=definition.lineno, col_offset=0) for _ in definition.args.defaults]
    definition.args.defaults = list(nothing)
    definition.args.kw_defaults = [
        default and ast.Constant(None, lineno=definition.lineno, col_offset=0)
        for default in definition.args.kw_defaults
    ]
    kept = []
    for decorator in definition.decorator_list:
        kept.append(decorator)
        if _is_cluster(decorator, thing):
            # What stands above it is done with what it makes, here.
            kept.clear()
    definition.decorator_list = kept


def _is_cluster(decorator: ast.expr, function: Any) -> bool:
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    names = []
    while isinstance(call, ast.Attribute):
        names.append(call.attr)
        call = call.value
    if not isinstance(call, ast.Name):
        return False
    visible = {**function.__globals__, **_closure_of(function)}
    found = visible.get(call.id)
    for name in reversed(names):
        found = getattr(found, name, None)
    return getattr(found, "_is_warpgauge_cluster", False) is True


def _lambda(function: FunctionType, text: str) -> ast.FunctionDef:
    """A lambda as a function, if it is the only one of its lines."""
    tree = None
    # Its lines may begin or end in the middle of a statement.
    for candidate in (text, f"({text})", text.strip().rstrip(","), f"({text.strip().rstrip(',')}", f"_({text.strip()}"):
        try:
            tree = ast.parse(candidate)
            break
        except SyntaxError:
            continue
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)] if tree is not None else []
    same = [node for node in found if _names_in_code(node) == function.__code__.co_varnames[: _count(function)]]
    if len(found) != 1 or len(same) != 1:
        raise NotData("a lambda that is not the only one of its lines: define a function with `def`")
    made = ast.parse("def _lambda():\n    return None").body[0]
    assert isinstance(made, ast.FunctionDef) and isinstance(made.body[0], ast.Return)
    made.args, made.body[0].value = found[0].args, found[0].body
    for node in (made, made.body[0]):
        node.lineno = node.end_lineno = found[0].lineno
    made.args.defaults = [ast.Constant(None, lineno=made.lineno, col_offset=0) for _ in made.args.defaults]
    return made


def _names_in_code(node: ast.Lambda) -> tuple[str, ...]:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return tuple(argument.arg for argument in every)


def _count(function: FunctionType) -> int:
    return function.__code__.co_argcount + function.__code__.co_kwonlyargcount


def names_of(source: str) -> list[str]:
    """Names that a source finds outside itself."""
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


def _closure_of(function: FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            # It has no value yet: the server says so if it is used.
            continue
    return found


def _function_of(value: Any) -> FunctionType | None:
    """The function that a decorator may have wrapped."""
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
    """Whether a module is of Python or installed, so that a server may have it."""
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
    """Whether it lies where packages are installed: beside descriptions of them."""
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


def _named_in_library(value: Any) -> tuple[str, str] | None:
    """Module and name of what a library defines."""
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
