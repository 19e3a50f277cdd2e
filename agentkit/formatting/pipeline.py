"""The pipeline: the pure part of formatting, as one list of stages.

Input: a conversation in normal form with its loaded media, and a `StageContext`. Output: the request. Each stage
is a function `stage(conversation, context) -> conversation`. A conversation visits each stage of `STAGES` once, in
this order. The context has the target, the history policy, the loaded media and the options. Stages note in its
ledger what they change.

A stage runs only if its test in the list says that it can change something. Most messages are text, and most
targets have few rules, so that most stages are skipped without a call. A new rule for content is one more entry.

No stage reads a file, a clock, the environment or a global. The same input gives the same request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Final, TypeAlias

from pydantic_core import to_json

from agentkit.argument_checks import check_option
from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.groups import TurnCapabilities
from agentkit.capabilities.name_rules import legal_speaker_names
from agentkit.formatting.omissions import OmittedDetails, OmittedNames
from agentkit.formatting.request_spec import Request, RequestSpec, fit_tool_names
from agentkit.history.policies import HistoryPolicy
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import TracedConversation, prompt_length
from agentkit.legalize.conversation import LegalConversation, legalize_messages, move_system_prompt
from agentkit.legalize.media import OnLoss
from agentkit.legalize.opaque_pairs import drop_half_pairs
from agentkit.legalize.thinking_pairs import without_orphaned_parts
from agentkit.legalize.tool_results import order_results
from agentkit.legalize.tool_turns import fit_exchanges
from agentkit.legalize.turns import TurnRules
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import build_trusted
from agentkit.repair.normal_form import find_normal_form
from agentkit.repair.pairing import repair_pairing
from agentkit.tools.choices import ToolChoice
from agentkit.tools.json_schema import OutputSchema
from agentkit.tools.tool import Tool

__all__ = ["CALL_A_TOOL", "CALL_ONE_OF", "CALL_TOOL", "STAGES", "Stage", "StageContext", "run_pipeline"]

CALL_A_TOOL = "(Answer by calling a tool.)"
CALL_TOOL = "(Answer by calling the tool {}.)"
CALL_ONE_OF = "(Answer by calling one of the tools {}.)"
"""Last user turn where the caller requires a tool call and the target does not accept that tool choice."""


@dataclass(slots=True)
class StageContext:
    """Everything besides the conversation that stages read, and the ledger that they write.

    Attributes:
        spec: The target, tools, tool choice and output schema. Stages may replace it.
        history: The history policy.
        on_loss: The treatment of content that the target cannot carry.
        ledger: The ledger of the request.
        media: The loaded media.

    """

    spec: RequestSpec
    history: HistoryPolicy
    on_loss: OnLoss
    ledger: Ledger
    media: ResolvedMedia
    capabilities: Capabilities = field(init=False)

    def __post_init__(self) -> None:
        self.capabilities = self.spec.capabilities


Conversation: TypeAlias = LegalConversation
"""Conversation of the pipeline. Before `split_system_prompt`, its turns are all messages and `system` is empty."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Step of the pipeline: a function, and a test that returns False if the function would change nothing."""

    run: Callable[[Conversation, StageContext], Conversation]
    is_needed: Callable[[Conversation, StageContext], bool] | None = None


def run_pipeline(
    conversation: TracedConversation,
    context: StageContext,
    convert: Callable[[LegalConversation, RequestSpec], Request],
) -> tuple[Request, LegalConversation]:
    """Returns the request for a conversation in normal form, and the legal conversation that `convert` got.

    Raises:
        MessageError: Two tools would have the same name in the request.
        OptionError: The history policy or `convert` returned a value of another type.

    """
    context.ledger.details = OmittedDetails(context.capabilities, context.history)
    spec, tool_names = context.spec, dict[str, str]()
    if spec.tools or spec.tool_choice or spec.syntheses:
        context.spec, tool_names = fit_tool_names(spec, context.ledger)
    current = LegalConversation(TracedConversation([], []), conversation)
    for stage in STAGES:
        if stage.is_needed is None or stage.is_needed(current, context):
            current = stage.run(current, context)
    current.tool_names.update(tool_names)
    request = convert(current, context.spec)
    if type(request) is not dict:
        check_option("convert()", request, dict, "Return the request as a dict.")
    return request, current


# -- tests of the stages -----------------------------------------------------------------------------------------


def _may_have(conversation: Conversation, features: int) -> bool:
    """Returns True if a turn may have one of the features."""
    facts = conversation.turns.normal_form
    return facts is None or bool(facts.features & features)


def _needs_legalizing(conversation: Conversation, context: StageContext) -> bool:
    capabilities, turns = context.capabilities, context.capabilities.turns
    late_lines = Feature.SYSTEM if turns.late_system == "line" else 0
    if _may_have(conversation, capabilities.feature_mask | Feature.REPEATED | late_lines):
        return True
    prompt = conversation.system.msgs
    if turns.one_system and len(prompt) > 1:
        return True
    return any(msg.features & capabilities.feature_mask for msg in prompt)


def _states_choice_in_text(context: StageContext) -> bool:
    choice = context.spec.tool_choice
    return choice is not None and choice.mode not in context.capabilities.tools.choices


def _states_output_in_text(context: StageContext) -> bool:
    return context.spec.output is not None and context.capabilities.output != "schema"


def _has_turn_rules(turns: TurnCapabilities) -> bool:
    return turns.merge or turns.alternate or turns.first_user or turns.last_user or turns.needs_user


# -- history and options -----------------------------------------------------------------------------------------


def apply_history_policy(conversation: Conversation, context: StageContext) -> Conversation:
    """Renders the conversation as the history policy defines."""
    rendered = context.history.render(conversation.turns, context.ledger, context.capabilities)
    if type(rendered) is not TracedConversation:
        advice = "Return the conversation, or override `view` instead."
        check_option("history.render()", rendered, TracedConversation, advice)
    return conversation if rendered is conversation.turns else conversation.with_turns(rendered)


def repair_rendered(conversation: Conversation, context: StageContext) -> Conversation:
    """Repairs exchanges of which the history policy omitted a part. This is not a loss."""
    return conversation.with_turns(repair_pairing(conversation.turns, context.ledger, "omit"))


def note_omitted_names(conversation: Conversation, context: StageContext) -> Conversation:
    """Notes the speaker names for which the API has no field."""
    viewer = getattr(context.history, "viewer", None)
    context.ledger.late_notes = OmittedNames(conversation.turns, context.capabilities, viewer)
    return conversation


def add_tool_choice_text(conversation: Conversation, context: StageContext) -> Conversation:
    """Adds a last user turn that asks for a tool call. At the end, it changes no prefix."""
    choice, turns = context.spec.tool_choice, conversation.turns
    if choice is None:
        return conversation
    reason = f"{context.capabilities.name} does not accept tool_choice {choice.mode!r}; a text asks for it instead"
    context.ledger.add_synthesis("tool choice", reason)
    text = CALL_A_TOOL if choice.name is None else CALL_TOOL.format(choice.name)
    if choice.names:
        text = CALL_ONE_OF.format(", ".join(choice.names))
    request = build_trusted("user", text, "user")
    extended = TracedConversation([*turns.msgs, request], [*turns.origins, ("tool choice",)])
    extended.normal_form = find_normal_form(extended)
    context.spec = replace(context.spec, tool_choice=None)
    return conversation.with_turns(extended)


def begin_with_output_instruction(conversation: Conversation, context: StageContext) -> Conversation:
    """Adds the output schema to a system prompt that becomes the start of the first user turn."""
    turns = conversation.turns
    extended = TracedConversation([*turns.msgs], [*turns.origins], turns.normal_form)
    instruction = _create_instruction(context)
    extended.insert(prompt_length(turns.msgs), instruction.msgs[0], instruction.origins[0])
    return conversation.with_turns(extended)


def add_output_instruction(conversation: Conversation, context: StageContext) -> Conversation:
    """Adds the output schema to the end of the system prompt."""
    conversation.system.extend(_create_instruction(context))
    return conversation


def _create_instruction(context: StageContext) -> TracedConversation:
    output = context.spec.output
    text = "" if output is None else _describe_schema(output)
    context.ledger.add_synthesis("output instruction", "the API does not enforce a JSON schema; a text states it")
    return TracedConversation([build_trusted("system", text, "system")], [("output instruction",)])


def _describe_schema(output: OutputSchema) -> str:
    # DeepSeek and DashScope refuse json_object unless a message says json.
    return f"Answer in json, with one object that matches this JSON schema:\n{to_json(output.schema).decode()}"


# -- rules of the target -----------------------------------------------------------------------------------------


def omit_orphaned_parts(conversation: Conversation, context: StageContext) -> Conversation:
    """Omits parts of replies that the target accepts only with thinking that is not sent."""
    return conversation.with_turns(
        without_orphaned_parts(conversation.turns, context.ledger, context.capabilities)
    )


def omit_half_pairs(conversation: Conversation, context: StageContext) -> Conversation:
    """Omits opaque blocks whose request or response is missing."""
    return conversation.with_turns(drop_half_pairs(conversation.turns, context.ledger, context.capabilities))


def rewrite_exchanges(conversation: Conversation, context: StageContext) -> Conversation:
    """Writes exchanges as text, or with one call in each turn."""
    turns = fit_exchanges(conversation.turns, context.ledger, context.capabilities, context.on_loss)
    return conversation.with_turns(turns)


def split_system_prompt(conversation: Conversation, context: StageContext) -> Conversation:
    """Separates the system prompt from the turns."""
    turns = conversation.turns
    count = prompt_length(turns.msgs)
    system = turns.part(0, count)
    remaining = TracedConversation(turns.msgs[count:], turns.origins[count:], turns.normal_form)
    return LegalConversation(system, remaining)


def legalize_content(conversation: Conversation, context: StageContext) -> Conversation:
    """Rewrites each message to the rules for its blocks. Media that cannot stay move to a user turn."""
    return legalize_messages(conversation, context.ledger, context.capabilities, context.on_loss, context.media)


def arrange_results(conversation: Conversation, context: StageContext) -> Conversation:
    """Arranges tool results in the order and the turns that the target requires."""
    return conversation.with_turns(order_results(conversation.turns, context.capabilities, conversation.call_ids))


def begin_with_system_prompt(conversation: Conversation, context: StageContext) -> Conversation:
    """Moves the system prompt to the start of the first user turn."""
    return move_system_prompt(conversation, context.ledger)


def apply_turn_rules(conversation: Conversation, context: StageContext) -> Conversation:
    """Merges turns of one role, and adds filler turns."""
    rules = TurnRules(conversation.turns, context.ledger, context.capabilities)
    return conversation.with_turns(rules.run(bool(conversation.system.msgs)))


def fit_speaker_names(conversation: Conversation, context: StageContext) -> Conversation:
    """Finds the speaker names that the API's name field does not accept, and their replacements."""
    speakers = (msg.name for msg in chain(conversation.system.msgs, conversation.turns.msgs))
    refused = context.capabilities.turns.speaker_refused
    conversation.speakers.update(legal_speaker_names(speakers, refused))
    for traced in conversation.turns if conversation.speakers else ():
        name = conversation.speakers.get(traced.msg.name)
        if name is not None and not traced.msg.features & Feature.RESULT:
            note = Note(Disposition.CARRIED, f"speaker name sent as {name!r}")
            context.ledger.note_origins(traced.block_origins, note)
    return conversation


def declare_called_tools(conversation: Conversation, context: StageContext) -> Conversation:
    """Declares the tools that the history calls, for APIs that require declarations of called tools."""
    called = (msg.blocks for msg in conversation.turns.msgs if msg.features & Feature.CALL)
    names = dict.fromkeys(block.name for blocks in called for block in blocks if isinstance(block, ToolUseBlock))
    if names:
        reason = "the API requires declarations of tools that the history calls; tool_choice is 'none'"
        context.ledger.add_synthesis("declared tools", reason)
        tools = tuple(map(_declare, names))
        context.spec = replace(context.spec, tools=tools, tool_choice=ToolChoice("none"))
    return conversation


@lru_cache(1_024)
def _declare(name: str) -> Tool:
    return Tool(name)


# -- the list ----------------------------------------------------------------------------------------------------

STAGES: Final[tuple[Stage, ...]] = (
    Stage(apply_history_policy),
    Stage(repair_rendered, lambda conversation, _: conversation.turns.normal_form is None),
    Stage(note_omitted_names, lambda _, context: not context.capabilities.turns.speaker_names),
    Stage(add_tool_choice_text, lambda _, context: _states_choice_in_text(context)),
    Stage(
        begin_with_output_instruction,
        lambda _, context: _states_output_in_text(context) and not context.capabilities.turns.system_role,
    ),
    Stage(
        omit_orphaned_parts,
        lambda conversation, context: (
            context.capabilities.opaque.needs_thinking is not None and _may_have(conversation, Feature.THINKING)
        ),
    ),
    Stage(
        omit_half_pairs,
        lambda conversation, context: (
            context.capabilities.opaque.pair_key is not None and _may_have(conversation, Feature.OPAQUE)
        ),
    ),
    Stage(
        rewrite_exchanges,
        lambda conversation, context: (
            not (context.capabilities.tools.role and context.capabilities.tools.parallel_calls)
            and _may_have(conversation, Feature.TOOL)
        ),
    ),
    Stage(split_system_prompt),
    Stage(legalize_content, _needs_legalizing),
    Stage(arrange_results, lambda conversation, _: _may_have(conversation, Feature.TOOL)),
    Stage(begin_with_system_prompt, lambda _, context: not context.capabilities.turns.system_role),
    Stage(
        apply_turn_rules,
        lambda conversation, context: not conversation.turns.msgs or _has_turn_rules(context.capabilities.turns),
    ),
    Stage(fit_speaker_names, lambda _, context: context.capabilities.turns.speaker_names),
    Stage(
        declare_called_tools,
        lambda _, context: not context.spec.tools and context.capabilities.tools.needs_declarations,
    ),
    Stage(
        add_output_instruction,
        lambda _, context: _states_output_in_text(context) and context.capabilities.turns.system_role,
    ),
)
"""The stages of the pipeline, in order."""
