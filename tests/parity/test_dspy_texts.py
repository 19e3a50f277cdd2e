"""The messages of the adapters equal those of DSPy 3.4.1, byte for byte, and replies have the same values."""

from __future__ import annotations

import datetime
import enum
import json
import os
import subprocess
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import pydantic
import pydantic_core
import pytest
import typing_extensions

from agentkit import OptionError, ParseError
from agentkit.prompts.adapter import Adapter
from agentkit.prompts.chat_adapter import ChatAdapter
from agentkit.prompts.examples import Example
from agentkit.prompts.field_types import Code, History, Reasoning
from agentkit.prompts.fields import InputField, OutputField
from agentkit.prompts.json_adapter import JSONAdapter
from agentkit.prompts.signature import Signature
from agentkit.prompts.xml_adapter import XMLAdapter
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

pytestmark = pytest.mark.parity

_ADAPTERS: Final[dict[str, Adapter]] = {
    "chat": ChatAdapter(),
    "json": JSONAdapter(native_tools=False),
    "compact": JSONAdapter(native_tools=False, schema_style="compact"),
    "xml": XMLAdapter(),
}
_PAIRS: Final = [(case, adapter) for case in CASES for adapter in _ADAPTERS]
_NAMES: Final[dict[str, Any]] = {
    **{name: getattr(typing, name) for name in ("Any", "Literal", "Optional", "Union")},
    "Signature": Signature,
    "InputField": InputField,
    "OutputField": OutputField,
    "History": History,
    "TypedDict": typing_extensions.TypedDict,
    "BaseModel": pydantic.BaseModel,
    "Field": pydantic.Field,
    "Enum": enum.Enum,
    "datetime": datetime,
    "Code": Code,
    "Reasoning": Reasoning,
    "because": Reasoning("Because."),
}


@pytest.fixture(scope="module")
def worker() -> Iterator[subprocess.Popen[str]]:
    """A process with DSPy. The variable AGENTKIT_DSPY names its interpreter."""
    python = os.environ.get("AGENTKIT_DSPY")
    if python is None:
        pytest.fail("Set AGENTKIT_DSPY to the interpreter of an environment with the extra `parity`.")
    command = [python, str(Path(__file__).with_name("dspy_worker.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def _name(value: object) -> str:
    return value.name if isinstance(value, Case) else str(value)


@pytest.mark.parametrize(
    ("case", "adapter"),
    [(case, adapter) for case, adapter in _PAIRS if (adapter, case.name) not in MESSAGE_DIFFERENCES],
    ids=_name,
)
def test_messages_and_values_are_those_of_dspy(worker: subprocess.Popen[str], case: Case, adapter: str) -> None:
    texts = {"chat": case.chat, "xml": case.xml}.get(adapter, case.json)
    expected = _ask(worker, case, adapter, texts)
    signature, messages = _format(case, adapter)
    assert messages == expected["messages"]
    assert [_parse(_ADAPTERS[adapter], signature, text) for text in texts] == expected["parsed"]


@pytest.mark.parametrize(
    ("case", "adapter"),
    [(case, adapter) for case, adapter in _PAIRS if (adapter, case.name) in MESSAGE_DIFFERENCES],
    ids=_name,
)
def test_only_the_system_message_differs_for_these_types(
    worker: subprocess.Popen[str], case: Case, adapter: str
) -> None:
    expected = _ask(worker, case, adapter, case.json)
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
    expected = _ask(worker, case, adapter, ())["messages"]
    assert sum(own != other for own, other in zip(messages, expected, strict=True)) == 1


@pytest.mark.parametrize("row", REPLY_DIFFERENCES, ids=lambda row: f"{row.reason} in {row.annotation}")
def test_sections_that_are_read_differently(worker: subprocess.Popen[str], row: ReplyDifference) -> None:
    case = Case(row.reason, write_source(row.annotation), "{'x': 1}")
    text = write_sections(row.body)
    (expected,) = _ask(worker, case, "xml", (text,))["parsed"]
    signature, _ = _format(case, "xml")
    outputs = _parse(_ADAPTERS["xml"], signature, text)
    assert (expected and expected["y"]) == row.dspy
    assert outputs["y"] == row.agentkit
    assert outputs["y"] != row.dspy


def _format(case: Case, adapter: str) -> tuple[Any, list[Any]]:
    names = _run(case.source)
    signature, inputs = names["S"], eval(case.inputs, names)
    examples = [_create_example(signature, demo) for demo in eval(case.demos, names)]
    msgs = _ADAPTERS[adapter].format(signature, inputs, examples=examples)
    return signature, [[msg.role, msg.content] for msg in msgs]


def _ask(worker: subprocess.Popen[str], case: Case, adapter: str, texts: tuple[str, ...]) -> dict[str, Any]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    question = {**case._asdict(), "adapter": adapter, "texts": texts}
    worker.stdin.write(json.dumps(question) + "\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    assert line, "the process with DSPy ended"
    return cast("dict[str, Any]", json.loads(line))


def _run(source: str) -> dict[str, Any]:
    names = dict(_NAMES)
    # Without `dont_inherit`, the annotations of the source would be texts, as those of this module are.
    exec(compile(source, "<case>", "exec", dont_inherit=True), names)
    return names


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
