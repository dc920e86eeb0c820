"""The program: finds it, and starts it as the command line."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from .errors import ArgumentError

# Place of the program in a wheel, and the variable that names a program elsewhere.
_INSTALLED = Path(__file__).with_name("_program") / "warpgauge"
_VARIABLE = "WARPGAUGE_BIN"


def find() -> Path:
    """Returns the program that WARPGAUGE_BIN names, else that of this package, else the first on the PATH."""
    if named := os.environ.get(_VARIABLE):
        if not os.access(named, os.X_OK) or Path(named).is_dir():
            raise ArgumentError(f"{_VARIABLE}={named} is no program")
        return Path(named)
    if _INSTALLED.is_file():
        return _INSTALLED
    own = Path(sys.argv[0]).resolve() if sys.argv and sys.argv[0] else None
    for directory in os.get_exec_path():
        found = shutil.which("warpgauge", path=directory)
        # The command of this package, which would start itself, begins with `#!`.
        if found and Path(found).resolve() != own and not _is_script(Path(found)):
            return Path(found)
    raise ArgumentError(
        "the program warpgauge is not here: install a wheel that has it (`cargo xtask wheel`), put it on the "
        f"PATH, or name it in {_VARIABLE}"
    )


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return True


def environment() -> dict[str, str]:
    """The environment for the program, which looks for Triton and PyTorch in the virtual environment that is active:
    that of this interpreter, where none is.
    """
    variables = dict(os.environ)
    if sys.prefix != sys.base_prefix:
        variables.setdefault("VIRTUAL_ENV", sys.prefix)
    return variables


def main() -> None:
    """Implements the command `warpgauge`: replaces this process by the program."""
    try:
        program = find()
    except ArgumentError as error:
        print(f"warpgauge: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    os.execve(program, ["warpgauge", *sys.argv[1:]], environment())
