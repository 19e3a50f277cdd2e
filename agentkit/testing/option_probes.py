"""Checks that a formatter adds the tools, the tool choice and the response format to its requests."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from agentkit.formatting.formatter import FormatterBase, RequestOptions
from agentkit.messages.message import Msg
from agentkit.testing.request_marks import clear_containers, iterate_scalars, json_text, walk_json
from agentkit.tools.json_schema import OutputSchema
from agentkit.tools.tool import Tool

__all__ = ["OPTION_PROBES", "OUTPUT_SCHEMA", "make_tools"]

_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "placeName": {"type": "string", "description": "parameterPlace"},
        "detailLevel": {
            "type": "object",
            "properties": {"zoomFactor": {"type": "integer", "description": "parameterZoom"}},
            "required": ["zoomFactor"],
            "additionalProperties": False,
        },
    },
    "required": ["placeName", "detailLevel"],
    "additionalProperties": False,
}
_STRICT_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"placeName": {"type": "string"}},
    "required": ["placeName"],
    "additionalProperties": False,
}
OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"verdictText": {"type": "string", "description": "outputVerdict"}},
    "required": ["verdictText"],
    "additionalProperties": False,
}
_MSGS: Final = [Msg("system", "Be brief.", "system"), Msg("Ann", "Where is it?", "user")]


def make_tools() -> list[Tool]:
    """Returns two tools with unique descriptions, so that a check can find the tools in a request."""
    look = Tool("look", "toolLook", copy.deepcopy(_PARAMETERS))
    return [look, Tool("count", "toolCount", {"type": "object", "properties": {}})]


def _request(formatter: FormatterBase, **options: Any) -> dict[str, Any]:
    return formatter.lower(_MSGS, **cast("RequestOptions", options)).request


def _tools(formatter: FormatterBase) -> Iterator[str]:
    """Checks that the request has the tools with their names, descriptions and parameters."""
    request = _request(formatter, tools=make_tools())
    texts = [str(leaf) for _, leaf in iterate_scalars(request)]
    keys = {key for _, key, _ in walk_json(request)}
    is_text = formatter.layout.is_rendered
    for wanted in ("look", "count"):
        if wanted not in (" ".join(texts) if is_text else texts) and wanted not in keys:
            yield f"the tool {wanted!r} is not sent"
    for wanted in ("toolLook", "toolCount", "parameterPlace", "parameterZoom"):
        if not any(wanted in text for text in texts):
            yield f"the description {wanted!r} of a tool is not sent"
    for wanted in ("placeName", "zoomFactor"):
        if wanted not in keys and not any(wanted in text for text in texts):
            yield f"the parameter {wanted!r} of a tool is not sent"


def _tool_choice(formatter: FormatterBase) -> Iterator[str]:
    """Checks that the requests for all accepted tool choices are different."""
    modes = formatter.capabilities().tools.choices
    choices: list[str | None] = [None, *sorted(modes & {"none", "required"})]
    choices += ["look", "count"] if "tool" in modes else []
    choices_by_request: dict[str, str | None] = {}
    for choice in choices:
        text = json_text(_request(formatter, tools=make_tools(), tool_choice=choice))
        if text in choices_by_request:
            other = choices_by_request[text]
            yield f"tool_choice={choice!r} results in the same request as tool_choice={other!r}"
        choices_by_request.setdefault(text, choice)


def _strict_mode(formatter: FormatterBase) -> Iterator[str]:
    """Checks that the request marks each strict tool as strict if the target has a strict mode."""
    if formatter.capabilities().tools.strict is None:
        return
    tool = Tool("look", "", _STRICT_PARAMETERS)
    strict, other = (_request(formatter, tools=[replace(tool, strict=flag)]) for flag in (True, None))
    if strict == other:
        yield "`tools.strict` is declared, but the strict flag of a tool is not sent. Add the flag in `convert`"


def _response_format(formatter: FormatterBase) -> Iterator[str]:
    """Checks that the request contains the schema of the response format.

    If the API can enforce JSON output but no schema, also checks that the request asks for JSON output.
    """
    request = _request(formatter, response_format=OUTPUT_SCHEMA)
    with_tools = _request(formatter, response_format=OUTPUT_SCHEMA, tools=make_tools())
    for label, sent in (("", request), (" together with tools", with_tools)):
        for wanted in ("verdictText", "outputVerdict"):
            if wanted not in json_text(sent):
                yield f"{wanted!r} of response_format is not sent{label}"
    if formatter.capabilities().output == "object":
        without = {*iterate_scalars(_request(formatter))}
        if all(pair in without or "verdictText" in str(pair[1]) for pair in iterate_scalars(request)):
            yield "response_format adds no field that requests JSON output"


def _sharing(formatter: FormatterBase) -> Iterator[str]:
    """Checks that building a request copies the tools and the schema, and does not change the originals."""
    tools, output = make_tools(), OutputSchema(copy.deepcopy(OUTPUT_SCHEMA), "verdict")

    def request() -> dict[str, Any]:
        return _request(formatter, tools=tools, tool_choice="auto", response_format=output)

    first = request()
    text = json_text(first)
    changed = _find_change(tools, output)
    if changed:
        yield f"building a request changes {changed}"
    if json_text(request()) != text:
        yield "building a request again with the same tools and schema results in a different request"
    clear_containers(first)
    shared = _find_change(tools, output)
    if shared and not changed:
        yield f"modifying the request also modifies {shared}. Copy all dicts and lists in `convert`"
    elif json_text(request()) != text:
        yield "two requests share lists or dicts of the tools or the schema"


def _find_change(tools: list[Tool], output: OutputSchema) -> str:
    """Returns a description of the option that was changed, or an empty string if no option was changed."""
    parameters: list[Mapping[str, Any]] = [tool.parameters for tool in tools]
    if parameters != [tool.parameters for tool in make_tools()]:
        return "the parameters of a tool"
    return "the schema of response_format" if output.schema != OUTPUT_SCHEMA else ""


OPTION_PROBES: Final[tuple[Callable[[FormatterBase], Iterator[str]], ...]] = (
    _tools,
    _tool_choice,
    _strict_mode,
    _response_format,
    _sharing,
)
