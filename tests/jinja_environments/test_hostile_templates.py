"""Hostile templates reach no Python object, file or clock, end, and cannot use all memory."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.jinja_environments.hostile_templates import ENDLESS, ESCAPES, LARGE, NESTED, PREFIXES, SLOW

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@cache
def render_all() -> dict[str, Any]:
    """Renders all templates in one process with limited memory and time."""
    command = [sys.executable, "-m", "tests.jinja_environments.hostile_templates"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=True)
    return dict(json.loads(process.stdout))


def select(group: str) -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = render_all()["results"]
    return {name: result for name, result in results.items() if name.startswith(f"{group}: ")}


def test_a_hostile_template_prints_no_python_object() -> None:
    results = select("escape")
    assert len(results) == len(set(ESCAPES))
    assert {name: result["text"] for name, result in results.items() if result.get("text")} == {}


@pytest.mark.parametrize(
    ("group", "cases", "words"),
    [
        ("endless", ENDLESS, (" the limit of ",)),
        ("large", LARGE, (" the limit of ", "too large", "is unsafe", "expected a number", "cannot be formatted")),
        ("nested", NESTED, ("too deeply", "too many statically nested blocks", "limit", "recursion")),
        ("prefixes", PREFIXES, (" the limit of ", "too large", "cannot be formatted")),
        ("slow", SLOW, (" the limit of ", "too large")),
    ],
    ids=["endless", "large", "nested", "prefixes", "slow"],
)
def test_a_hostile_template_is_an_error(group: str, cases: Any, words: tuple[str, ...]) -> None:
    results = select(group)
    assert len(results) == len(cases)
    others = {name: result for name, result in results.items() if "error" not in result}
    assert others == {}
    assert {name: error for name, error in _errors(results) if not any(word in error for word in words)} == {}


def _errors(results: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    return [(name, result["error"]) for name, result in results.items()]


def test_hostile_templates_need_little_memory_and_time() -> None:
    assert render_all()["peak"] < 300_000_000
    assert max(result["seconds"] for result in render_all()["results"].values()) < 30
