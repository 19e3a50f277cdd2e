"""Conversion of tools, tool choice and output schema to values that a target accepts.

If the target does not accept a tool choice or a schema, `prompt_instructions` writes it as text in the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Synthesis
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.object_schemas import as_object_schema
from agentkit.legalize.strict_schemas import close_for_strict, explain_refusal, find_open_object
from agentkit.messages.blocks import ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.tools.choices import ToolChoice
from agentkit.tools.json_schema import OutputSchema
from agentkit.tools.tool import Tool

__all__ = ["declare_called_tools", "fit_choice", "fit_output", "fit_tools", "select_output"]


_UNREAD = frozenset({"$ref", "enum", "const"})
"""Root keywords that can define arguments of a tool, and that cannot always be merged into `properties`."""


def fit_tools(tools: Sequence[Tool], capabilities: Capabilities, notes: list[Synthesis]) -> tuple[Tool, ...]:
    """Returns the tools with schemas that the target accepts.

    A note is added to `notes` for each tool that loses strict mode or keywords of its schema. If the target cannot
    declare tools, the result is empty and the note names the tools.
    """
    if tools and not capabilities.tools.declarations:
        names = ", ".join(repr(tool.name) for tool in tools)
        notes.append(Synthesis("tools", f"{capabilities.name} cannot declare tools, so {names} cannot be called"))
        return ()
    fitted = tuple(_fit_tool(tool, capabilities, notes) for tool in tools)
    rules = capabilities.tools.strict
    if rules is None or not rules.is_request_wide or len({tool.strict is True for tool in fitted}) < 2:
        return fitted
    other = next(tool.name for tool in fitted if not tool.strict)
    reason = f"{capabilities.name} has one strict mode for all tools, and the tool {other!r} is not strict"
    for tool, new in zip(tools, fitted, strict=True):
        if new.strict:
            notes.append(
                Synthesis("strict mode", f"tool {tool.name!r} sent without strict mode, because {reason}")
            )
    return tuple(_fit_tool(replace(tool, strict=None), capabilities, []) for tool in tools)


def _fit_tool(tool: Tool, capabilities: Capabilities, notes: list[Synthesis]) -> Tool:
    schema, lost = as_object_schema(tool.parameters)
    if lost:
        keywords = ", ".join(lost)
        reason = (
            f"tool {tool.name!r}: APIs require an object schema at the root of the parameters, so these root "
            f"keywords are not sent: {keywords}"
        )
        notes.append(Synthesis("tool schema", reason))
    strict, rules = tool.strict, capabilities.tools.strict
    if not strict:
        pass
    elif rules is None:
        strict = None
        name = capabilities.name
        reason = f"tool {tool.name!r} sent without strict mode, because {name} has no strict mode for tools"
        notes.append(Synthesis("strict mode", reason))
    else:
        closed, reason = close_for_strict(schema, rules)
        unread = [keyword for keyword in lost if keyword in _UNREAD]
        if unread:  # strict mode would forbid the arguments that these keywords define
            keywords = ", ".join(unread)
            closed, reason = None, f"the schema root has {keywords}, which cannot be converted to `properties`"
        if closed is None:
            strict = None
            notes.append(
                Synthesis("strict mode", f"tool {tool.name!r} sent without strict mode, because {reason}")
            )
        schema = closed or schema
    same = schema is tool.parameters and strict is tool.strict
    return tool if same else replace(tool, parameters=schema, strict=strict)


def fit_output(
    output: OutputSchema | None, capabilities: Capabilities, notes: list[Synthesis]
) -> OutputSchema | None:
    """Returns the output schema, with `strict` set to True or False for the target.

    Returns the schema unchanged if the target does not accept output schemas, or has no strict mode for them. For
    any other target, `strict` becomes False in these cases:

    - `output.strict` is False.
    - `output.strict` is None, and the schema is not closed (see `OutputSchema.closed`).
    - The target's strict mode refuses the schema.
    """
    rules = capabilities.tools.strict
    if output is None or capabilities.output != "schema" or rules is None or not rules.has_output_flag:
        return output
    if output.strict is False or (output.strict is None and not output.closed):
        return replace(output, strict=False)
    if open_object := find_open_object(output.schema):
        closed, reason = None, f"the {open_object} allows additional properties"
    else:
        closed, reason = close_for_strict(output.schema, rules)
    if closed is None:
        notes.append(Synthesis("strict mode", f"response_format sent without strict mode, because {reason}"))
        return replace(output, strict=False)
    return replace(output, schema=closed, strict=True)


def select_output(output: OutputSchema | None, has_tools: bool, capabilities: Capabilities) -> Capabilities:
    """Returns the capabilities with the value of `output` that applies to this request.

    The value depends on the output schema, because an API can have different fields for a schema and for any JSON
    object. An API can also refuse schemas that are open or recursive. The value also depends on the tools, because
    some APIs cannot combine tools with an output schema.
    """
    mode = capabilities.output
    if output is None:
        return capabilities
    if has_tools and not capabilities.can_combine_output:
        mode = "prompt"
    elif output.is_any_object:
        mode = "prompt" if capabilities.json_object == "prompt" else "object"
    elif explain_refusal(output.schema, capabilities):
        mode = "prompt"
    return capabilities if mode == capabilities.output else _with_output(capabilities, mode)


@lru_cache(64)
def _with_output(capabilities: Capabilities, mode: str) -> Capabilities:
    return capabilities.override({"output": mode})


def fit_choice(
    tools: tuple[Tool, ...], choice: ToolChoice | None, capabilities: Capabilities, notes: list[Synthesis]
) -> tuple[tuple[Tool, ...], ToolChoice | None]:
    """Returns the tools to declare and the tool choice of the request.

    If the API cannot limit the choice to some of the tools, the request does not declare the other tools. A mode
    that the target refuses stays in the returned choice, because a later stage adds a text that asks for a tool
    call.
    """
    modes = capabilities.tools.choices
    if choice and choice.name is not None and "tool" not in modes and "required" in modes:
        choice = ToolChoice("required", names=(choice.name,))
    if choice is None or not choice.names or choice.mode in capabilities.tools.allowed:
        return tools, choice
    names = choice.names
    if {*names} == {tool.name for tool in tools}:
        return tools, ToolChoice(choice.mode)
    if choice.mode == "required" and len(names) == 1 and ("tool" in modes or "required" not in modes):
        return tools, ToolChoice("tool", names[0])
    listed = ", ".join(map(repr, names))
    reason = (
        f"{capabilities.name} cannot limit the choice to some of the tools, so the request declares only {listed}"
    )
    notes.append(Synthesis("tool choice", reason))
    offered = tuple(tool for tool in tools if tool.name in names)
    return offered, ToolChoice(choice.mode) if choice.mode in modes else choice


def declare_called_tools(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Declares the tools of earlier calls if the API requires declarations and the request has no tools."""
    if context.spec.tools:
        return conversation
    contents = (msg.blocks for msg in conversation.turns.msgs if msg.features & Feature.CALL)
    blocks = (block for content in contents for block in content)
    names = dict.fromkeys(block.name for block in blocks if isinstance(block, ToolUseBlock))
    if names:
        reason = "the API requires declarations of all tools that were called"
        choice = ToolChoice("none") if "none" in context.spec.capabilities.tools.choices else None
        if choice:
            reason += "; tool_choice 'none' forbids new calls"
        context.ledger.add_synthesis("declared tools", reason)
        context.spec = replace(context.spec, tools=tuple(map(_declare, names)), tool_choice=choice)
    return conversation


@lru_cache(1_024)
def _declare(name: str) -> Tool:
    return Tool(name)
