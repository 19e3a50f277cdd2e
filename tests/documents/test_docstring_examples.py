"""The examples in docstrings run unchanged."""

import doctest
import importlib
import pkgutil

import agentkit


def test_docstring_examples_run() -> None:
    names = ["agentkit", *(module.name for module in pkgutil.walk_packages(agentkit.__path__, "agentkit."))]
    results = {name: doctest.testmod(importlib.import_module(name)) for name in names}
    assert {name: result for name, result in results.items() if result.failed} == {}
    assert sum(result.attempted for result in results.values()) >= 3
