"""Arrangement of tool results in the order and the turns that a target requires."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias, cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.provenance import Provenance, TracedConversation
from agentkit.legalize.call_ids import legal_call_id
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.messages.blocks import ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted

__all__ = ["arrange_results"]

_Result: TypeAlias = tuple[ToolResultBlock, Provenance]
"""A tool result, with the path of the input block that it comes from."""


def arrange_results(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Puts tool results into the order and turns that the target requires. This is a pipeline stage.

    If an earlier stage replaced the ids of calls, the results get the new ids.
    """
    turns, target, call_ids = conversation.turns, context.spec.capabilities, conversation.call_ids
    is_ordered = turns.normal_form is not None and turns.normal_form.ordered
    together = target.tools.results == "together"
    if is_ordered or not (together or target.tools.results_in_order or call_ids):
        return conversation
    out = TracedConversation([], [])
    index = 0
    while index < len(turns.msgs):
        msg = turns.msgs[index]
        out.add(msg, turns.origins[index])
        index += 1
        if not msg.features & Feature.CALL:
            continue
        stop = index
        while stop < len(turns.msgs) and turns.msgs[stop].features & Feature.RESULT:
            stop += 1
        _add_results(out, msg, turns.part(index, stop), target, call_ids)
        index = stop
    return conversation.with_turns(out)


def _add_results(
    out: TracedConversation,
    call: Msg,
    results: TracedConversation,
    target: Capabilities,
    call_ids: Mapping[str, str],
) -> None:
    """Adds the tool results of one assistant turn to `out`, all in one message or each in a separate message."""
    together = target.tools.results == "together"
    result_ids = tuple(call_id for msg in results.msgs for call_id in msg.tool_ids)
    is_ordered = result_ids == call.tool_ids
    if not together and not target.tools.results_in_order:
        is_ordered = Counter(result_ids) == Counter(call.tool_ids)  # the target accepts results in any order
    if is_ordered and not (together and len(results.msgs) > 1):
        out.extend(results)
        return
    pairs = [pair for traced in results for pair in traced.traced_blocks]
    ordered = _sort_by_call(call, cast("list[_Result]", pairs), target, call_ids)
    name = results.msgs[0].name
    if together:
        blocks, origins = tuple(block for block, _ in ordered), tuple(origin for _, origin in ordered)
        out.add(build_trusted(name, blocks, "system"), origins)
    else:
        for block, origin in ordered:
            out.add(build_trusted(name, (block,), "system"), (origin,))


def _sort_by_call(
    call: Msg, results: list[_Result], target: Capabilities, call_ids: Mapping[str, str]
) -> list[_Result]:
    """Returns the results in the order of their calls.

    If several calls have the same id, the nth of these calls gets the nth result with this id.
    """
    waiting: dict[str, deque[_Result]] = {}
    for pair in results:
        waiting.setdefault(pair[0].id, deque()).append(pair)
    ordered: list[_Result] = []
    for call_id in call.tool_ids:
        original = call_ids.get(call_id, call_id)
        spellings = (call_id, original, legal_call_id(target, original))
        block, origin = next(waiting[id] for id in spellings if waiting.get(id)).popleft()
        ordered.append((block if block.id == call_id else replace(block, id=call_id), origin))
    return ordered
