"""Tools, the choice among them, and the schema of the answer as one target takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentkit.capabilities import Capabilities
from agentkit.ledger import Synthesis
from agentkit.object_schemas import as_object_schema
from agentkit.schemas import OutputSchema
from agentkit.strict_schemas import close_for_strict
from agentkit.tools import Tool, ToolChoice

__all__ = ["fit_choice", "fit_output", "fit_tools"]


_UNREAD = frozenset({"$ref", "enum", "const"})
"""Keywords at the root that may describe arguments; those that could not be merged are not in the schema."""


def fit_tools(tools: Sequence[Tool], form: Capabilities, notes: list[Synthesis]) -> tuple[Tool, ...]:
    """Returns the tools with schemas that the target takes; what that changes for the model goes into `notes`."""
    return tuple(_fit_tool(tool, form, notes) for tool in tools)


def _fit_tool(tool: Tool, form: Capabilities, notes: list[Synthesis]) -> Tool:
    schema, lost = as_object_schema(tool.parameters)
    if lost:
        reason = f"tool {tool.name!r}: {', '.join(lost)} at the root of its parameters: merged into one object"
        notes.append(Synthesis("tool schema", reason))
    strict = tool.strict
    if strict and form.strict is None:
        strict = None
        notes.append(Synthesis("strict mode", f"tool {tool.name!r}: {form.target} has no strict mode for tools"))
    elif strict and form.strict is not None:
        closed, reason = close_for_strict(schema, form.strict)
        unread = [keyword for keyword in lost if keyword in _UNREAD]
        if unread:  # a closed schema would forbid the arguments that these describe
            closed, reason = None, f"{', '.join(unread)} could not be merged"
        if closed is None:
            strict = None
            notes.append(Synthesis("strict mode", f"tool {tool.name!r}: sent without strict: {reason}"))
        schema = closed or schema
    same = schema is tool.parameters and strict is tool.strict
    return tool if same else replace(tool, parameters=schema, strict=strict)


def fit_output(output: OutputSchema | None, form: Capabilities, notes: list[Synthesis]) -> OutputSchema | None:
    """Returns the schema of the answer with its `strict` flag settled, where the target has one for answers."""
    if output is None or form.output != "schema" or form.strict is None or not form.strict.outputs:
        return output
    if output.strict is False or (output.strict is None and not output.closed):
        return replace(output, strict=False)
    closed, reason = close_for_strict(output.schema, form.strict)
    if closed is None:
        notes.append(Synthesis("strict mode", f"response_format: sent without strict: {reason}"))
        return replace(output, strict=False)
    return replace(output, schema=closed, strict=True)


def fit_choice(
    tools: tuple[Tool, ...], choice: ToolChoice | None, form: Capabilities, notes: list[Synthesis]
) -> tuple[tuple[Tool, ...], ToolChoice | None]:
    """Returns the tools to offer, and a choice among several that the target takes or that is left for words.

    Where the API cannot limit the choice to some of the tools, only these are offered.
    """
    if choice is None or not choice.names or choice.mode in form.allowed_tools:
        return tools, choice
    names, modes = choice.names, form.tool_choices
    if {*names} == {tool.name for tool in tools}:
        return tools, ToolChoice(choice.mode)
    if choice.mode == "required" and len(names) == 1 and ("tool" in modes or "required" not in modes):
        return tools, ToolChoice("tool", names[0])
    listed = ", ".join(map(repr, names))
    reason = f"{form.target} cannot limit the choice to some of the tools: only {listed} offered"
    notes.append(Synthesis("tool choice", reason))
    offered = tuple(tool for tool in tools if tool.name in names)
    return offered, ToolChoice(choice.mode) if choice.mode in modes else choice
