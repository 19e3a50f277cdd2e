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

from agentkit import ParseError
from agentkit.prompts.adapter import Adapter
from agentkit.prompts.chat_adapter import ChatAdapter
from agentkit.prompts.examples import Example
from agentkit.prompts.field_types import Code, History, Reasoning
from agentkit.prompts.fields import InputField, OutputField
from agentkit.prompts.json_adapter import JSONAdapter
from agentkit.prompts.signature import Signature
from tests.parity.cases import CASES, DIFFERENCES, Case

pytestmark = pytest.mark.parity

_ADAPTERS: Final[dict[str, Adapter]] = {"chat": ChatAdapter(), "json": JSONAdapter(native_tools=False)}
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


@pytest.mark.parametrize("adapter", [*_ADAPTERS])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_messages_and_values_are_those_of_dspy(worker: subprocess.Popen[str], case: Case, adapter: str) -> None:
    texts = case.chat if adapter == "chat" else case.json
    expected = _ask(worker, case, adapter, texts)
    signature, messages = _format(case, adapter)
    assert messages == expected["messages"]
    assert [_parse(_ADAPTERS[adapter], signature, text) for text in texts] == expected["parsed"]


@pytest.mark.parametrize("adapter", [*_ADAPTERS])
@pytest.mark.parametrize("case", DIFFERENCES, ids=lambda case: case.name)
def test_values_that_dspy_confuses_have_different_texts(
    worker: subprocess.Popen[str], case: Case, adapter: str
) -> None:
    _, messages = _format(case, adapter)
    expected = _ask(worker, case, adapter, ())["messages"]
    assert messages[:-1] == expected[:-1]
    assert messages[-1] != expected[-1]


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
