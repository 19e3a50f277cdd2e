"""Tests of return values of tools that become results."""

from __future__ import annotations

import pytest

from agentkit import ToolUseBlock
from agentkit.tools.results import as_result


@pytest.mark.parametrize(
    ("value", "type_name"), [(object(), "object"), ([object()], "list")], ids=["object", "list"]
)
def test_a_value_that_is_no_json_is_an_error_result_with_its_type(value: object, type_name: str) -> None:
    block = as_result(ToolUseBlock("a", "look", {}), value)
    assert block.is_error
    assert block.text.startswith(f"The tool returned a {type_name} that cannot be converted to JSON: ")
