"""Options of requests, native tools and streams are those of DSPy 3.4.1."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pytest

from agentkit.prompts import Adapter, ChatAdapter, FieldDelta, FieldEnd, JSONAdapter, XMLAdapter
from agentkit.prompts.native_outputs import find_tools
from agentkit.tools.json_schema import OutputSchema
from agentkit_openai import OpenAIChatFormatter
from tests.cases import each_case
from tests.parity.cases import CASES, TOOL_ROWS, Case
from tests.parity.conftest import ask_dspy, run_source

pytestmark = pytest.mark.parity

_CAPABILITIES: Final = OpenAIChatFormatter(model="gpt-6").capabilities()
_ADAPTERS: Final[dict[str, Adapter]] = {
    "chat": ChatAdapter(),
    "json": JSONAdapter(native_tools=False),
    "xml": XMLAdapter(),
    "native": ChatAdapter(native_tools=True),
}


STREAMS: Final = (
    ("chat", "[[ ## a ## ]]\nTwo boats.\n\nMore: é\n\n[[ ## b ## ]]\nx y z\n\n[[ ## completed ## ]]\n"),
    ("chat", "[[ ## a ## ]]\n- one\n- two\n\n[[ ## b ## ]]\n{}\n\n[[ ## completed ## ]]\n"),
    ("xml", "<a>\nTwo boats.\n\nMore: é\n</a>\n\n<b>\n1 < 2 > 0\n</b>"),
    ("xml", "<a>\n<i>x</i> y\n</a>\n<b>\nz\n</b>"),
)
"""Replies whose fields a stream listener of DSPy reports completely.

The listener loses text after `[[`, adds the last marker if each piece is one character, and reports JSON with its
quotes and keys.
"""


@pytest.mark.parametrize("has_schemas", [True, False])
@pytest.mark.parametrize("adapter", ["chat", "json", "xml"])
@each_case("case", {case.name: case for case in CASES})
def test_the_response_format_is_that_of_dspy(
    worker: subprocess.Popen[str], case: Case, adapter: str, has_schemas: bool
) -> None:
    expected = ask_dspy(worker, case, adapter, has_schemas=has_schemas)
    expected_format = expected["options"].get("response_format")
    signature = run_source(case.source)["S"]
    capabilities = _CAPABILITIES if has_schemas else _CAPABILITIES.override({"output": "text"})
    options = _ADAPTERS[adapter].request_options(signature, capabilities)
    response_format = options.get("response_format")
    if isinstance(response_format, OutputSchema):
        own = response_format.schema
        assert expected_format["required"] == own["required"]
        assert expected_format["additionalProperties"] is own["additionalProperties"] is False
        assert _get_types(expected_format) == _get_types(own)
    else:
        assert expected_format == (None if response_format is None else {"type": response_format})


_TEXT_TYPES: Final = ("#/$defs/Code", "#/$defs/Reasoning")


def _get_types(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns the type of each property that has one. DSPy describes a text type of its own as an object."""
    return {
        name: "string" if rule.get("$ref", "").startswith(_TEXT_TYPES) else rule.get("type")
        for name, rule in schema["properties"].items()
    }


@pytest.mark.parametrize("row", TOOL_ROWS)
def test_tool_calls_in_a_history_are_those_of_dspy(worker: subprocess.Popen[str], row: str) -> None:
    inputs = f"{{'q': 'hi', 'tools': [look], 'history': History(messages=[{TOOL_ROWS[row]}])}}"
    case = Case(row, _TOOLS, inputs)
    expected = ask_dspy(worker, case, "native", has_schemas=True)
    names = run_source(case.source)
    signature, values = names["S"], eval(inputs, names)
    adapter = _ADAPTERS["native"]
    options = adapter.request_options(signature, _CAPABILITIES, find_tools(signature, values))
    request = OpenAIChatFormatter(model="gpt-6").lower(adapter.format(signature, values), **options).request
    assert [_simplify(message) for message in request["messages"]] == [
        _simplify(message, _ERROR_MARKS) for message in expected["messages"]
    ]
    assert [tool["function"]["name"] for tool in request["tools"]] == ["look"]
    assert [tool["function"]["name"] for tool in expected["options"]["tools"]] == ["look"]


_TOOLS: Final = """
def look(x: int) -> str:
    'Looks.'
    return ''
look = Tool(look)
class S(Signature):
    q: str = InputField()
    tools: Tools = InputField()
    history: History = InputField()
    a: Optional[str] = OutputField()
    calls: ToolCalls = OutputField()
"""


_ERROR_MARKS: Final = {"c2": "[error] "}
"""Text before the results of failed calls. DSPy does not tell the model that a call failed."""


def _simplify(message: dict[str, Any], marks: Mapping[str, str] = MappingProxyType({})) -> tuple[object, ...]:
    """Returns role, content, tool calls and call id of a message. Arguments are JSON values."""
    calls = [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    call_id, content = message.get("tool_call_id"), message.get("content")
    mark = marks.get(call_id or "")
    return message["role"], f"{mark}{content}" if mark else content, calls, call_id


@each_case("size", [3, 5, 7])
@each_case("field", ["a", "b"])
@each_case(("adapter", "text"), STREAMS)
def test_the_deltas_of_a_field_have_the_text_of_dspy(
    worker: subprocess.Popen[str], adapter: str, text: str, field: str, size: int
) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    case = Case("stream", "S = Signature('q -> a, b')")
    expected = "".join(ask_dspy(worker, case, adapter, field=field, pieces=pieces)["deltas"])
    parser = _ADAPTERS[adapter].stream_parser(run_source(case.source)["S"])
    events = [event for piece in pieces for event in parser.feed(piece)]
    parser.finish()
    events += parser.drain()
    deltas = [event.text for event in events if isinstance(event, FieldDelta) and event.name == field]
    values = [event.value for event in events if isinstance(event, FieldEnd) and event.name == field]
    assert ["".join(deltas)] == values == [expected.strip()]
