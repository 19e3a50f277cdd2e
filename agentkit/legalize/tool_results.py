"""Order and turns of tool results as a target requires them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.provenance import Provenance, TracedConversation, block_origins
from agentkit.legalize.call_ids import legal_call_id
from agentkit.messages.blocks import ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted

__all__ = ["order_results"]


def order_results(
    turns: TracedConversation, form: Capabilities, call_ids: Mapping[str, str]
) -> TracedConversation:
    """Returns the results with the ids, the order and the turns that the target requires.

    `call_ids` are the ids that calls were given, with those that they had.
    """
    together = form.tools.results == "together"
    in_order = turns.normal_form is not None and turns.normal_form.ordered
    if in_order or not (together or form.tools.results_in_order or call_ids):
        return turns
    out = TracedConversation([], [])
    at = 0
    while at < len(turns.msgs):
        msg = turns.msgs[at]
        out.add(msg, turns.origins[at])
        at += 1
        if not msg.features & Feature.CALL:
            continue
        stop = at
        while stop < len(turns.msgs) and turns.msgs[stop].features & Feature.RESULT:
            stop += 1
        _add_results(out, msg, turns.part(at, stop), form, call_ids)
        at = stop
    return out


def _add_results(
    out: TracedConversation,
    call: Msg,
    results: TracedConversation,
    form: Capabilities,
    call_ids: Mapping[str, str],
) -> None:
    together = form.tools.results == "together"
    found = tuple(answered for msg in results.msgs for answered in msg.tool_ids)
    in_place = found == call.tool_ids
    if not in_place and not together and not form.tools.results_in_order:
        in_place = Counter(found) == Counter(call.tool_ids)  # the wire takes any order: keep the arrival's
    if in_place and not (together and len(results.msgs) > 1):
        out.msgs.extend(results.msgs)
        out.origins.extend(results.origins)
        return
    blocks = [
        (cast("ToolResultBlock", block), origin)
        for msg, whole in zip(results.msgs, results.origins, strict=True)
        for block, origin in zip(msg.blocks, block_origins(msg, whole), strict=True)
    ]
    ordered = _in_call_order(call, blocks, form, call_ids)
    if together:
        joined = build_trusted(results.msgs[0].name, tuple(block for block, _ in ordered), "system")
        out.add(joined, tuple(origin for _, origin in ordered))
    else:
        for block, origin in ordered:
            out.add(build_trusted(results.msgs[0].name, (block,), "system"), (origin,))


def _in_call_order(
    call: Msg, results: list[tuple[ToolResultBlock, Provenance]], form: Capabilities, call_ids: Mapping[str, str]
) -> list[tuple[ToolResultBlock, Provenance]]:
    """Returns the result of each call. The k-th call with an id gets the k-th result with it."""
    left: dict[str, deque[tuple[ToolResultBlock, Provenance]]] = {}
    for pair in results:
        left.setdefault(pair[0].id, deque()).append(pair)
    ordered: list[tuple[ToolResultBlock, Provenance]] = []
    for wanted in call.tool_ids:
        original = call_ids.get(wanted, wanted)
        names = (wanted, original, legal_call_id(form, original))
        block, origin = next(left[name] for name in names if left.get(name)).popleft()
        ordered.append((block if block.id == wanted else replace(block, id=wanted), origin))
    return ordered
