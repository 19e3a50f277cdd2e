"""The pipeline, which builds a request without I/O by running a list of stages.

The input is a repaired conversation and a `StageContext` with the loaded media. The output is the request. Each
stage is a function `stage(conversation, context) -> conversation`. The stages run once, in the order of `STAGES`.
The context has the target, the history policy, the loaded media and the options. Stages record their
changes in the ledger of the context.

A feature is a property of a conversation, such as the presence of images. An entry of `STAGES` has a function, and
the features of the conversations that the function can change. The pipeline skips an entry if the conversation has
none of these features. Most messages are text, and most targets have few rules, so most stages are skipped.

No stage reads a file, a clock, the environment or a global variable. Equal inputs produce equal requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Final

from agentkit.argument_checks import check_option
from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.name_rules import legal_speaker_names
from agentkit.formatting.omissions import OmittedDetails, OmittedNames
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.provenance import TracedConversation
from agentkit.legalize.alternating_turns import apply_turn_rules
from agentkit.legalize.block_rules import list_features
from agentkit.legalize.call_ids import make_call_ids_distinct
from agentkit.legalize.call_texts import omit_call_texts, omit_thinking_beside_texts
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.earlier_thinking import omit_earlier_thinking
from agentkit.legalize.opaque_pairs import omit_half_pairs
from agentkit.legalize.prompt_instructions import (
    add_output_instruction,
    add_tool_choice_text,
    begin_with_output_instruction,
)
from agentkit.legalize.request_spec import Request, RequestSpec, fit_tool_names
from agentkit.legalize.result_order import arrange_results
from agentkit.legalize.rewritten_messages import legalize_content
from agentkit.legalize.system_messages import (
    begin_with_system_prompt,
    join_system_prompt,
    write_late_system_lines,
)
from agentkit.legalize.thinking_pairs import omit_orphaned_parts
from agentkit.legalize.tool_options import declare_called_tools
from agentkit.legalize.tool_turns import rewrite_exchanges
from agentkit.messages.features import Feature
from agentkit.messages.system_prompt import prompt_length
from agentkit.repair.pairing import repair_pairing

__all__ = ["STAGES", "Stage", "run_pipeline", "select_stages"]

_ANY: Final = 1 << 40
"""Feature bit that every request has."""

_TOOL_CHOICE: Final = 1 << 41
"""Feature bit of requests with a tool choice."""

_OUTPUT: Final = 1 << 42
"""Feature bit of requests with an output schema."""

_NO_TURNS: Final = 1 << 43
"""Feature bit of requests without turns after the system prompt."""

_UNCHECKED: Final = 1 << 44
"""Feature bit of conversations that may still need repair."""

_ALL_CONTENT: Final = _UNCHECKED | _ANY - 1
"""Feature bits of a conversation that was not checked yet: `_UNCHECKED` and all bits of `Feature`."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the pipeline. `STAGES` lists all steps.

    Attributes:
        run: Function that takes a conversation and the context, and returns the changed conversation. If nothing
            changes, the function returns the same object.
        features: Function that takes the target and returns bits of `Feature`, or of the constants of this module.
            The pipeline calls `run` only for conversations with one of these features. 0 means that the target
            never needs the step.
    """

    run: Callable[[LegalConversation, StageContext], LegalConversation]
    features: Callable[[Capabilities], int] = lambda _: _ANY


def run_pipeline(
    conversation: TracedConversation,
    context: StageContext,
    convert: Callable[[LegalConversation, RequestSpec], Request],
) -> tuple[Request, LegalConversation]:
    """Returns the request for a repaired conversation, and the rewritten conversation that `convert` received.

    Raises:
        MessageError: If two tools would have the same name in the request.
        OptionError: If the history policy or `convert` returns a value of the wrong type.
    """
    spec, tool_names = context.spec, dict[str, str]()
    target = spec.capabilities
    context.ledger.details = OmittedDetails(target, context.history)
    if spec.tools or spec.tool_choice or spec.syntheses:
        context.spec, tool_names = fit_tool_names(spec, context.ledger)
    current = LegalConversation(TracedConversation([], []), conversation)
    features = _find_features(current, context.spec)
    for run, mask in select_stages(target):
        if features & mask:
            changed = run(current, context)
            if changed is not current:
                current = changed
                features = _find_features(current, context.spec)
    current.tool_names.update(tool_names)
    request = convert(current, context.spec)
    for origin, note in current.notes:
        if isinstance(origin, str):
            context.ledger.add_synthesis(origin, note.reason)
        else:
            context.ledger.note(origin, note)
    if type(request) is not dict:
        check_option("convert()", request, dict, "Return the request as a dict.")
    return request, current


def _find_features(conversation: LegalConversation, spec: RequestSpec) -> int:
    """Returns the features of a request. `Feature.SYSTEM` is set only for messages after the system prompt."""
    features = _ANY
    if spec.tool_choice is not None:
        features |= _TOOL_CHOICE
    if spec.output is not None:
        features |= _OUTPUT
    if not conversation.turns.msgs:
        features |= _NO_TURNS
    normal_form = conversation.turns.normal_form
    if normal_form is None:
        return features | _ALL_CONTENT
    for msg in conversation.system.msgs:
        features |= msg.features & ~Feature.SYSTEM
    return features | normal_form.features


@lru_cache(512)
def select_stages(
    target: Capabilities,
) -> tuple[tuple[Callable[[LegalConversation, StageContext], LegalConversation], int], ...]:
    """Returns the pipeline stages that a target needs, as pairs of a function and its features (see `Stage`)."""
    stages = ((stage.run, stage.features(target)) for stage in STAGES)
    return tuple((run, features) for run, features in stages if features)


# -- history ---------------------------------------------------------------------------------------------------


def apply_history_policy(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Replaces the conversation with the messages that the history policy shows to the model."""
    rendered = context.history.render(conversation.turns, context.ledger, context.spec.capabilities)
    if type(rendered) is not TracedConversation:
        advice = "Return a TracedConversation, or override `view` instead."
        check_option("history.render()", rendered, TracedConversation, advice)
    return conversation if rendered is conversation.turns else conversation.with_turns(rendered)


def repair_rendered(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Repairs tool calls and results after the history policy omitted some of them.

    The ledger records no loss, because the policy omitted the calls and results on purpose.
    """
    repaired = repair_pairing(conversation.turns, context.ledger, "omit")
    return LegalConversation(conversation.system, repaired)


def note_omitted_names(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Prepares ledger notes about speaker names that the API has no field for."""
    viewer = getattr(context.history, "viewer", None)
    context.ledger.late_notes = OmittedNames(conversation.turns, context.spec.capabilities, viewer)
    return conversation


def split_system_prompt(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Separates the system prompt from the turns."""
    turns = conversation.turns
    count = prompt_length(turns.msgs)
    remaining = TracedConversation(turns.msgs[count:], turns.origins[count:], turns.normal_form)
    return LegalConversation(turns.part(0, count), remaining)


def fit_speaker_names(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Replaces speaker names that the API does not accept in its field for names."""
    speakers = (msg.name for msg in chain(conversation.system.msgs, conversation.turns.msgs))
    refused = context.spec.capabilities.turns.speaker_refused
    conversation.speakers.update(legal_speaker_names(speakers, refused))
    for traced in conversation.turns if conversation.speakers else ():
        name = conversation.speakers.get(traced.msg.name)
        if name is not None and not traced.msg.features & Feature.RESULT:
            reason = f"speaker name sent as {name!r}, because the API does not accept the original name"
            context.ledger.note_origins(traced.block_origins, Note(Disposition.CARRIED, reason))
    return conversation


# -- features of the stages ------------------------------------------------------------------------------------


def _has_turn_rules(target: Capabilities) -> bool:
    turns = target.turns
    return turns.merge or turns.alternate or turns.first_user or turns.last_user or turns.needs_user


def _states_output(target: Capabilities, *, system_role: bool) -> int:
    return _OUTPUT if target.output != "schema" and target.turns.system_role is system_role else 0


STAGES: Final[tuple[Stage, ...]] = (
    Stage(apply_history_policy),
    Stage(repair_rendered, lambda _: _UNCHECKED),
    Stage(note_omitted_names, lambda target: 0 if target.turns.speaker_names else _ANY),
    Stage(add_tool_choice_text, lambda _: _TOOL_CHOICE),
    Stage(begin_with_output_instruction, lambda target: _states_output(target, system_role=False)),
    Stage(omit_orphaned_parts, lambda target: Feature.THINKING if target.opaque.needs_thinking else 0),
    Stage(omit_earlier_thinking, lambda target: 0 if target.thinking.scope == "all" else Feature.THINKING),
    Stage(
        omit_call_texts, lambda target: Feature.CALL if target.tools.role and not target.tools.call_texts else 0
    ),
    Stage(
        omit_thinking_beside_texts,
        lambda target: 0 if target.thinking.beside_call_texts else Feature.THINKING,
    ),
    Stage(omit_half_pairs, lambda target: Feature.OPAQUE if target.opaque.pair_key else 0),
    Stage(
        rewrite_exchanges,
        lambda target: 0 if target.tools.role and target.tools.parallel_calls else Feature.TOOL,
    ),
    Stage(split_system_prompt),
    Stage(legalize_content, list_features),
    Stage(make_call_ids_distinct, lambda _: Feature.REPEATED),
    Stage(write_late_system_lines, lambda target: Feature.SYSTEM if target.turns.late_system == "line" else 0),
    Stage(add_output_instruction, lambda target: _states_output(target, system_role=True)),
    Stage(join_system_prompt, lambda target: _ANY if target.turns.one_system else 0),
    Stage(arrange_results, lambda _: Feature.TOOL),
    Stage(begin_with_system_prompt, lambda target: 0 if target.turns.system_role else _ANY),
    Stage(apply_turn_rules, lambda target: _ANY if _has_turn_rules(target) else _NO_TURNS),
    Stage(
        fit_speaker_names,
        lambda target: _ANY if target.turns.speaker_names and target.turns.speaker_refused else 0,
    ),
    Stage(declare_called_tools, lambda target: Feature.CALL if target.tools.needs_declarations else 0),
)
"""The stages of the pipeline, in order."""
