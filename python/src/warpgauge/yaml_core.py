"""Parses YAML like the server (the core schema of YAML 1.2), on top of PyYAML.

PyYAML itself reads `1e-5` as a text and `on` as a boolean.
"""

from __future__ import annotations

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):  # type: ignore[misc,unused-ignore]
    """Plain data, without the types of YAML 1.1."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", "~nN\0"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("float", r"^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$", "-+."),
):
    _starts = [*_first.replace("\0", ""), *([""] if "\0" in _first else [])]
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _starts)


def _integer(loader: Any, node: Any) -> int:
    return int(loader.construct_scalar(node))


def _mapping(loader: Any, node: Any) -> dict[Any, Any]:
    """Returns a mapping. A repeated key is an error, which would otherwise stay unnoticed."""
    read: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, (str, int, float, bool)) or key in read:
            mark = key_node.start_mark
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} comes twice, or is none", mark)
        read[key] = loader.construct_object(value_node, deep=True)
    return read


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def parse(text: str) -> Any:
    """Returns the document. Raises `ValueError` with the place of the error."""
    try:
        return yaml.load(text, Loader=_Loader)  # a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"not YAML: {error}") from None
