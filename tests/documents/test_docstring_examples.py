"""The examples in docstrings run unchanged."""

import doctest
import importlib
import pkgutil

import pytest

import agentkit

MODULES = [module.name for module in pkgutil.walk_packages(agentkit.__path__, "agentkit.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_some_docstrings_have_examples() -> None:
    tests = [test for name in MODULES for test in doctest.DocTestFinder().find(importlib.import_module(name))]
    assert sum(bool(test.examples) for test in tests) >= 3
