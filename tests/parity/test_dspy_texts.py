"""The messages of the adapters equal those of DSPy 3.4.1, byte for byte, and replies have the same values."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any, Final

import pydantic_core
import pytest

from agentkit import OptionError, ParseError
from agentkit.prompts.adapter import Adapter
from agentkit.prompts.chat_adapter import ChatAdapter
from agentkit.prompts.examples import Example
from agentkit.prompts.json_adapter import JSONAdapter
from agentkit.prompts.xml_adapter import XMLAdapter
from tests.cases import each_case
from tests.parity.cases import (
    CASES,
    DIFFERENCES,
    MESSAGE_DIFFERENCES,
    REPLY_DIFFERENCES,
    Case,
    ReplyDifference,
    write_sections,
    write_source,
)
from tests.parity.conftest import ask_dspy, run_source

pytestmark = pytest.mark.parity

_ADAPTERS: Final[dict[str, Adapter]] = {
    "chat": ChatAdapter(),
    "json": JSONAdapter(native_tools=False),
    "compact": JSONAdapter(native_tools=False, schema_style="compact"),
    "xml": XMLAdapter(),
}


def _name(value: object) -> str:
    return value.name if isinstance(value, Case) else str(value)


@pytest.mark.parametrize("adapter", _ADAPTERS)
@each_case("case", {case.name: case for case in CASES})
def test_messages_and_values_are_those_of_dspy(worker: subprocess.Popen[str], case: Case, adapter: str) -> None:
    if (adapter, case.name) in MESSAGE_DIFFERENCES:
        return
    texts = {"chat": case.chat, "xml": case.xml}.get(adapter, case.json)
    expected = ask_dspy(worker, case, adapter, texts)
    signature, messages = _format(case, adapter)
    assert messages == expected["messages"]
    assert [_parse(_ADAPTERS[adapter], signature, text) for text in texts] == expected["parsed"]


@pytest.mark.parametrize(
    ("case", "adapter"),
    [(case, adapter) for case in CASES for adapter in _ADAPTERS if (adapter, case.name) in MESSAGE_DIFFERENCES],
    ids=_name,
)
def test_only_the_system_message_differs_for_these_types(
    worker: subprocess.Popen[str], case: Case, adapter: str
) -> None:
    expected = ask_dspy(worker, case, adapter, case.json)
    if "error" in expected and "twice" not in case.name:
        with pytest.raises(OptionError, match="contains itself"):
            _format(case, adapter)
        return
    signature, messages = _format(case, adapter)
    if "error" in expected:
        assert messages[0][1].count("x: int,") == 2
        return
    assert messages[0] != expected["messages"][0]
    assert messages[1:] == expected["messages"][1:]
    assert [_parse(_ADAPTERS[adapter], signature, text) for text in case.json] == expected["parsed"]


@pytest.mark.parametrize(("adapter", "case"), DIFFERENCES, ids=_name)
def test_values_that_dspy_confuses_have_different_texts(
    worker: subprocess.Popen[str], case: Case, adapter: str
) -> None:
    _, messages = _format(case, adapter)
    expected = ask_dspy(worker, case, adapter, ())["messages"]
    assert sum(own != other for own, other in zip(messages, expected, strict=True)) == 1


@pytest.mark.parametrize("row", REPLY_DIFFERENCES, ids=lambda row: f"{row.reason} in {row.annotation}")
def test_replies_that_are_read_differently(worker: subprocess.Popen[str], row: ReplyDifference) -> None:
    case = Case(row.reason, write_source(row.annotation), "{'x': 1}")
    text = write_sections(row.body) if row.adapter == "xml" else row.body
    (expected,) = ask_dspy(worker, case, row.adapter, (text,))["parsed"]
    signature, _ = _format(case, row.adapter)
    outputs = _parse(_ADAPTERS[row.adapter], signature, text)
    assert (expected and expected["y"]) == row.dspy
    assert outputs["y"] == row.agentkit
    assert outputs["y"] != row.dspy


def _format(case: Case, adapter: str) -> tuple[Any, list[Any]]:
    names = run_source(case.source)
    signature, inputs = names["S"], eval(case.inputs, names)
    examples = [_create_example(signature, demo) for demo in eval(case.demos, names)]
    msgs = _ADAPTERS[adapter].format(signature, inputs, examples=examples)
    return signature, [[msg.role, msg.content] for msg in msgs]


def _create_example(signature: Any, demo: Mapping[str, Any]) -> Example:
    inputs = {name: value for name, value in demo.items() if name in signature.input_fields}
    outputs = {name: value for name, value in demo.items() if name in signature.output_fields}
    return Example(inputs, outputs)


def _parse(adapter: Adapter, signature: Any, text: str) -> Any:
    try:
        outputs = adapter.parse(signature, text)
    except ParseError:
        return None
    return pydantic_core.to_jsonable_python(outputs, fallback=str)
