"""The environment that the program is started with."""

from __future__ import annotations

import sys

import pytest

from warpgauge import program


def test_the_program_looks_into_the_environment_of_its_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setattr(sys, "prefix", "/venv")
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert program.environment()["VIRTUAL_ENV"] == "/venv"
    # An environment that is active is the user's choice.
    monkeypatch.setenv("VIRTUAL_ENV", "/active")
    assert program.environment()["VIRTUAL_ENV"] == "/active"
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.setattr(sys, "prefix", "/usr")
    assert "VIRTUAL_ENV" not in program.environment()
