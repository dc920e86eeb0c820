# A function that a caller sent, with everything that it uses: other functions as source, modules by
# name, values as data. Pickled objects are accepted from callers who may send them.

import ast
import builtins
import importlib

# Maximum number of lines of a file that tracebacks show, and maximum number of objects of a
# program.
MOST_LINES = 200_000
MOST_OBJECTS = 10_000

# Maximum length of the source of one function, characters.
LONGEST_SOURCE = 4 << 20

# The `__name__` of the module that a caller's functions see.
CALLER = "caller"


class Broken(Exception):
    """The program cannot be loaded. The message gives the reason and a remedy."""


class RaisedByProgram(Exception):
    """The caller's source, a pickled object or an imported module raised an exception."""

    def __init__(self, error):
        super().__init__(str(error))
        self.error = error


class FunctionProgram:
    """Creates the objects of a program, each once and on demand."""

    def __init__(self, data, pickles):
        self.reader = ValueReader(data, self.other)
        self.root = self.reader.root
        self.objects = self.root["objects"]
        if len(self.objects) > MOST_OBJECTS:
            raise Broken(f"the program has {len(self.objects)} objects; the limit is {MOST_OBJECTS}")
        self.pickles = pickles
        # Objects by index, and the global variables of those that have some.
        self.made, self.namespaces = {}, {}
        # Names whose object was not complete yet when they were bound.
        self.postponed = []

    def value(self, name):
        """Returns a value of the root."""
        return self.reader.of(self.root[name])

    def entry(self):
        function = self.reader.of(self.root["entry"])
        for namespace, name, index in self.postponed:
            namespace[name] = self.made[index]
        return function

    def namespace_of_entry(self):
        return self.namespaces[self.root["entry"][1]]

    def other(self, tree):
        if tree[0] != "o":
            raise NotData(f"the kind {str(tree[0])[:40]!r}, which this version does not know")
        return self.object(tree[1])

    def object(self, index):
        if index in self.made:
            return self.made[index]
        if index in self.namespaces:
            raise Broken("data contain a function that needs these data: pass one of the two as an argument")
        described = self.objects[index]
        self.made[index] = made = getattr(self, "made_" + described["kind"])(index, described)
        return made

    def made_module(self, index, described):
        name = described["name"]
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise Broken(
                f"the function uses the module {name}, but the server has no {error.name}: functions can use "
                "the modules that are installed with the server's PyTorch"
            ) from None
        except BaseException as error:
            raise RaisedByProgram(error) from None

    def made_attribute(self, index, described):
        found = self.made_module(index, {"name": described["module"]})
        for part in described["name"].split("."):
            try:
                found = getattr(found, part)
            except AttributeError:
                raise Broken(
                    f"the server's module {described['module']} has no {described['name']}; it may have "
                    "a different version"
                ) from None
        return found

    def made_namespace(self, index, described):
        """Creates a module with the names of the caller's module that the program uses."""
        self.namespaces[index] = namespace = {}
        self.bind(namespace, described["globals"])
        module = types.ModuleType(described["name"])
        module.__dict__.update(namespace)
        self.namespaces[index] = module.__dict__
        return module

    def made_pickle(self, index, described):
        if not self.pickles:
            raise Broken("the program has pickled objects, which the caller's key does not allow")
        import pickle

        try:
            return pickle.loads(self.reader.of(described["data"]))
        except ModuleNotFoundError as error:
            raise Broken(
                f"a pickled object needs the module {error.name}, which is not installed with the server's "
                "PyTorch"
            ) from None
        except BaseException as error:
            raise RaisedByProgram(error) from None

    def made_instance(self, index, described):
        """Creates an instance of the caller's class without calling its constructor; sets the sent attributes."""
        made = object.__new__(self.reader.of(described["class"]))
        # Attributes may refer to the object itself.
        self.made[index] = made
        for name, tree in described["state"].items():
            made.__dict__[name] = self.reader.of(tree)
        return made

    def made_source(self, index, described):
        """Creates a function or a class from its source."""
        namespace = {"__name__": CALLER, "__builtins__": builtins}
        self.namespaces[index] = namespace
        self.bind(namespace, described["globals"])
        code = compiled(described)
        try:
            exec(code, namespace)
        except BaseException as error:
            raise RaisedByProgram(error) from None
        made = namespace[described["name"]]
        for attribute, name in (("__defaults__", "defaults"), ("__kwdefaults__", "kwdefaults")):
            if described.get(name) is not None:
                # A decorated function wraps the function that has the defaults.
                setattr(inspect.unwrap(made), attribute, self.reader.of(described[name]))
        return made

    def bind(self, namespace, bindings):
        for name, tree in bindings.items():
            under_way = (
                isinstance(tree, list)
                and tree[0] == "o"
                and tree[1] in self.namespaces
                and tree[1] not in self.made
            )
            if under_way:
                self.postponed.append((namespace, name, tree[1]))
            else:
                namespace[name] = self.reader.of(tree)

    def data(self):
        """Returns the global variables that functions see, by name, without functions and classes of
        libraries."""
        found = {}
        for namespace in self.namespaces.values():
            for name, value in namespace.items():
                own = getattr(value, "__module__", CALLER) == CALLER
                if not name.startswith("__") and (own or not callable(value)):
                    found.setdefault(name, value)
        return found


def compiled(described):
    """Compiles a source, with the line numbers of the caller's file."""
    source, file = described["source"], f"<{described['file']}>"
    if len(source) > LONGEST_SOURCE:
        raise Broken(
            f"the source of {described['name']} has {len(source)} characters; the limit is {LONGEST_SOURCE}: "
            "pass data as arguments"
        )
    try:
        tree = ast.parse(source, file)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise Broken(f"the source of {described['name']} cannot be parsed: {error}") from None
    nodes = list(ast.walk(tree.body[0])) if tree.body else []
    places = described.get("places")
    if places is None or len(places) != len(nodes):
        # An older package, or another version of Python, sends only lines.
        places = [None] * len(nodes)
    for node, place in zip(nodes, places):
        move(node, place, described["lines"])
    show_lines(file, described["shown"], described["first_line"])
    return compile(tree, file, "exec")


def move(node, place, lines):
    """Gives a node its position in the caller's file: first and last line, first and last column."""
    if getattr(node, "lineno", None) is None:
        return
    if place is not None:
        node.lineno, node.end_lineno, node.col_offset, node.end_col_offset = place
        return
    for name in ("lineno", "end_lineno"):
        setattr(node, name, lines[min(getattr(node, name), len(lines)) - 1])
    node.end_lineno = max(node.lineno, node.end_lineno)
    # The text was rewritten, so its columns do not match those of the caller's file.
    node.col_offset, node.end_col_offset = 0, 0


def show_lines(file, text, first):
    """Registers the known lines of a caller's file, so that tracebacks show them."""
    lines = text.splitlines(keepends=True)
    if first + len(lines) > MOST_LINES:
        return
    known = linecache.cache.get(file, (0, None, [], file))[2]
    known.extend(["\n"] * (first - 1 + len(lines) - len(known)))
    known[first - 1 : first - 1 + len(lines)] = lines
    linecache.cache[file] = (sum(map(len, known)), None, known, file)
