"""The models are the specification's: every field is there, and has its type."""

from __future__ import annotations

import types
import typing
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest
import yaml
from conftest import ROOT

from warpgauge import models

# The stream of events is no schema of the specification; a test of a real job looks at it.
NOT_THERE = {"Event", "_EventHead"}
TYPED = [n for n, v in vars(models).items() if is_typeddict(v) and n not in NOT_THERE and n != "TypedDict"]
WORDS = [n for n, v in vars(models).items() if get_origin(v) is Literal]


@cache
def schemas() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with (ROOT / "openapi/warpgauge.yaml").open() as file:
        return yaml.load(file, Loader=loader)["components"]["schemas"]


def resolved(schema: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The schema that one refers to, with its name."""
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return resolved(schema["allOf"][0])
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return name, resolved(schemas()[name])[1]
    return None, schema


def problem(hint: Any, schema: dict[str, Any]) -> str | None:
    """Why a type is not that of a schema."""
    nullable = schema.get("nullable", False)
    name, schema = resolved(schema)
    if hint is Any:
        return None if schema.get("type") is None or name else f"Any for {schema.get('type')}"
    if is_typeddict(hint):
        return None if hint.__name__ == name else f"{hint.__name__} for {name}"
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        words = schema.get("enum")
        return None if words and set(args) == set(words) else f"{args} for {words}"
    if types.NoneType in args and (nullable or schema.get("nullable")):
        schema = {key: value for key, value in schema.items() if key != "nullable"}
        return problem(args[0], {"$ref": f"#/{name}"} if name else schema)
    choices = schema.get("oneOf") or schema.get("anyOf")
    if origin in (Union, types.UnionType):
        if not choices:
            return f"a union for {schema.get('type')}"
        unmatched = [c for c in choices if all(problem(a, c) for a in args)]
        unused = [a for a in args if all(problem(a, c) for c in choices)]
        return f"{unmatched} and {unused}" if unmatched or unused else None
    if origin is list:
        return problem(args[0], schema["items"]) if schema.get("type") == "array" else "a list"
    if origin is dict:
        values = schema.get("additionalProperties")
        if schema.get("type") == "object" and values is True:
            return None if args[1] is Any else f"{args[1]} for any values"
        if schema.get("type") != "object" or not isinstance(values, dict):
            return "a dict"
        return problem(args[1], values) if args[1] is not Any else None
    known = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return (
        None
        if (known.get(hint) == schema.get("type") and "enum" not in schema)
        or (hint is str and schema.get("type") == "string")
        else f"{hint} for {schema.get('type')}"
    )


@pytest.mark.parametrize("name", TYPED)
def test_every_field_is_the_specifications(name: str) -> None:
    hints, there = get_type_hints(getattr(models, name)), schemas()[name]
    for field, hint in hints.items():
        assert field in there["properties"], f"{name} has no `{field}`"
        assert (why := problem(hint, there["properties"][field])) is None, f"{name}.{field}: {why}"


@pytest.mark.parametrize("name", TYPED)
def test_what_is_always_there_is_required(name: str) -> None:
    model = getattr(models, name)
    assert typing.cast(Any, model).__required_keys__ <= set(schemas()[name].get("required", []))


@pytest.mark.parametrize("name", [w for w in WORDS if w != "Literal"])
def test_words_are_the_specifications(name: str) -> None:
    assert problem(getattr(models, name), schemas()[name]) is None


def test_the_comparison_can_fail() -> None:
    there = schemas()["EvaluateRequest"]["properties"]
    assert problem(str, there["num_trials"])
    assert problem(models.Launch, there["kernel"])
    assert problem(list[int], schemas()["KernelMetadata"]["properties"]["compiler_options"])
    assert problem(Literal["none"], schemas()["Role"])
    assert problem(int, there["timeout"])
