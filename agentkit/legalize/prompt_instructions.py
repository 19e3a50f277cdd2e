"""Stages that put a tool choice or an output schema into the prompt, if the API has no field for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic_core import to_json

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.provenance import TracedConversation, TracedMessage
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.strict_schemas import explain_refusal
from agentkit.messages.message import Msg, build_trusted
from agentkit.messages.system_prompt import prompt_length
from agentkit.repair.normal_form import find_normal_form
from agentkit.tools.json_schema import OutputSchema

__all__ = [
    "CALL_A_TOOL",
    "CALL_ONE_OF",
    "CALL_TOOL",
    "OBJECT_INSTRUCTION",
    "SCHEMA_INSTRUCTION",
    "add_output_instruction",
    "add_tool_choice_text",
    "begin_with_output_instruction",
]

CALL_A_TOOL = "(Answer by calling a tool.)"
CALL_TOOL = "(Answer by calling the tool {}.)"
CALL_ONE_OF = "(Answer by calling one of the tools {}.)"
"""Texts of the user turn that asks for a tool call if the target does not accept the tool choice."""

# OpenAI, DeepSeek and DashScope refuse the response format json_object unless a message contains the word "json".
SCHEMA_INSTRUCTION = "Answer in json, with one object that matches this JSON schema:\n{}"
OBJECT_INSTRUCTION = "Answer in json, with one object."
"""Texts of the system message that describes the expected output."""


def add_tool_choice_text(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Adds a user turn that asks for a tool call, if the API does not accept the tool choice.

    The turn comes last, so that the messages before it stay the same and prompt caches stay valid.
    """
    choice, target, turns = context.spec.tool_choice, context.spec.capabilities, conversation.turns
    if choice is None or choice.mode in target.tools.choices:
        return conversation
    reason = (
        f"{target.name} does not accept tool_choice {choice.mode!r}, so an instruction in the prompt asks for a "
        "tool call"
    )
    context.ledger.add_synthesis("tool choice", reason)
    text = CALL_A_TOOL if choice.name is None else CALL_TOOL.format(choice.name)
    if choice.names:
        text = CALL_ONE_OF.format(", ".join(choice.names))
    request = build_trusted("user", text, "user")
    extended = TracedConversation([*turns.msgs, request], [*turns.origins, ("tool choice",)])
    extended.normal_form = find_normal_form(extended)
    context.spec = replace(context.spec, tool_choice=None)
    return conversation.with_turns(extended)


def begin_with_output_instruction(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Adds a system message that describes the expected output, after the last message of the system prompt.

    This stage is for APIs without a system role. A later stage moves the whole system prompt into the first user
    turn.
    """
    turns = conversation.turns
    count = prompt_length(turns.msgs)
    instruction = _create_instruction(turns.msgs[:count], context)
    if instruction is None:
        return conversation
    extended = TracedConversation([*turns.msgs], [*turns.origins], turns.normal_form)
    extended.insert(count, *instruction)
    return conversation.with_turns(extended)


def add_output_instruction(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Adds a system message that describes the expected output, at the end of the system prompt.

    This stage is for APIs with a system role.
    """
    instruction = _create_instruction(conversation.system.msgs, context)
    if instruction is not None:
        conversation.system.add(*instruction)
    return conversation


def _create_instruction(prompt: Sequence[Msg], context: StageContext) -> TracedMessage | None:
    """Returns a system message that describes the expected output, or None if the request needs no such message.

    If the output can be any JSON object, and the system prompt (`prompt`) already mentions JSON, no message is
    needed. Other messages that mention JSON do not suffice, because a budget may drop them.
    """
    output, target = context.spec.output, context.spec.capabilities
    if output is None:
        return None
    if not output.is_any_object:
        text = SCHEMA_INSTRUCTION.format(to_json(output.schema).decode())
        reason = f"{_explain(output, target)}, so a text asks the model to follow the schema"
    elif (target.output == "object" and target.json_object == "native") or _mentions_json(prompt):
        return None
    else:
        text = OBJECT_INSTRUCTION
        reason = "the API returns a JSON object only if the prompt asks for JSON, so an instruction was added"
    context.ledger.add_synthesis("output instruction", reason)
    return TracedMessage(build_trusted("system", text, "system"), ("output instruction",))


def _explain(output: OutputSchema, target: Capabilities) -> str:
    """Returns the reason why the API does not enforce an output schema."""
    if not target.can_combine_output:
        return "the API cannot enforce a JSON schema together with tools"
    refusal = explain_refusal(output.schema, target)
    return (
        f"the API cannot enforce a JSON schema if {refusal}" if refusal else "the API cannot enforce a JSON schema"
    )


def _mentions_json(prompt: Sequence[Msg]) -> bool:
    return any("json" in msg.text.lower() for msg in prompt)
