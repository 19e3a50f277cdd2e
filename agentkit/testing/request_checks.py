"""Checks the requests of a formatter: no side effects, no missing blocks, paired tool calls, the right order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, cast

from agentkit.errors import LossError
from agentkit.formatting.formatter import FormatterBase
from agentkit.history.policies import ChatHistory
from agentkit.ledger.plan import Plan
from agentkit.messages.blocks import (
    AudioBlock,
    Block,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ToolResultBlock,
    VideoBlock,
)
from agentkit.messages.message import Msg
from agentkit.messages.sources import Base64Source
from agentkit.reprs import describe_value
from agentkit.testing.conversations import CONVERSATIONS
from agentkit.testing.findings import collect_findings
from agentkit.testing.io_recording import record_io
from agentkit.testing.option_probes import OPTION_PROBES
from agentkit.testing.probes import PROBES, SENT
from agentkit.testing.request_marks import (
    clear_containers,
    find_marks,
    find_surroundings,
    iterate_scalars,
    json_text,
)

__all__ = ["request_faults"]

Check: TypeAlias = Callable[[FormatterBase, list[Msg]], Iterator[str]]


def request_faults(formatter_class: type[FormatterBase], model: str | None) -> Iterator[str]:
    """Yields a sentence for each fault in the requests of a formatter."""
    for name, msgs in CONVERSATIONS.items():
        for check in _CHECKS:
            place = f"{formatter_class.__name__}, {name}, {check.__name__.strip('_')}"
            yield from collect_findings(place, check(formatter_class(model), msgs))
    for probe in (*PROBES, *OPTION_PROBES):
        place = f"{formatter_class.__name__}, {probe.__name__.strip('_')}"
        yield from collect_findings(place, probe(formatter_class(model)))


# -- every conversation -------------------------------------------------------------------------------------------


def _purity(formatter: FormatterBase, msgs: list[Msg]) -> Iterator[str]:
    before = [msg.to_dict() for msg in msgs]
    first: object = formatter.lower(msgs).request
    if not isinstance(first, dict):
        yield f"expected the request as a dict, got {describe_value(first)}"
        return
    try:
        text = json_text(cast("object", first))
    except (TypeError, ValueError) as error:
        yield f"the request is not JSON: {error}"
        return
    if json_text(formatter.lower(msgs).request) != text:
        yield "building a request again from the same conversation results in a different request"
    with record_io() as events:
        formatter.lower(msgs)
    if events:
        yield f"building a request causes I/O: {', '.join(dict.fromkeys(events))}"
    clear_containers(cast("object", first))
    if json_text(formatter.lower(msgs).request) != text:
        yield "two requests share lists or dicts, so a change of one request changes the other"
    if [msg.to_dict() for msg in msgs] != before:
        yield "building a request changes the messages, or the request and the messages share lists or dicts"
    if json_text(type(formatter)(formatter.model).lower(msgs).request) != text:
        yield "a new formatter builds a different request from the same conversation"


def _pairing(formatter: FormatterBase, msgs: list[Msg]) -> Iterator[str]:
    text = json_text(formatter.lower(msgs).request)
    calls, results = find_marks("call", text), find_marks("result", text)
    for msg in msgs:
        for use in msg.tool_uses:
            mark = str(use.input.get("place"))
            result = "result" + mark.removeprefix("call")
            yield from _check_pair(mark, result, calls, results, _collect_result_marks(msgs))
    yield from _check_ids(formatter, msgs)


def _collect_result_marks(msgs: Sequence[Msg]) -> set[str]:
    return {mark for msg in msgs for block in msg.tool_results for mark in find_marks("result", block.text)}


def _check_pair(
    call: str,
    result: str,
    calls: Mapping[str, list[int]],
    results: Mapping[str, list[int]],
    conversation_results: set[str],
) -> Iterator[str]:
    call_positions, result_positions = calls.get(call, []), results.get(result, [])
    if len(call_positions) != 1:
        yield f"the tool call with {call!r} is sent {len(call_positions)} times, expected once"
    elif result in conversation_results and len(result_positions) != 1:
        yield f"the tool result {result!r} is sent {len(result_positions)} times, expected once"
    elif result in conversation_results and result_positions[0] < call_positions[0]:
        yield f"the tool result {result!r} comes before its call"


def _check_ids(formatter: FormatterBase, msgs: list[Msg]) -> Iterator[str]:
    """Checks that each tool call names its tool, and that a call and its result both have the call id or no id."""
    plan = formatter.lower(msgs)
    uses = {str(use.input.get("place")): use for msg in msgs for use in msg.tool_uses}
    sent_names = {original: sent for sent, original in {**plan.call_ids, **plan.tool_names}.items()}
    calls = find_surroundings(plan.request, [*uses])
    results = find_surroundings(plan.request, ["result" + mark.removeprefix("call") for mark in uses])
    for mark, use in uses.items():
        call = {text for _, text in calls.get(mark, [])}
        result = {text for _, text in results.get("result" + mark.removeprefix("call"), [])}
        id, name = sent_names.get(use.id, use.id), sent_names.get(use.name, use.name)
        if call and not any(name in text for text in call):
            yield f"the tool call with {mark!r} does not name its tool {name!r}"
        if call and result and (id in call) != (id in result):
            has_id, lacks_id = ("the call", "the result") if id in call else ("the result", "the call")
            yield f"{has_id} has the call id {id!r}, but {lacks_id} does not (tool call with {mark!r})"


def _conservation(formatter: FormatterBase, msgs: list[Msg]) -> Iterator[str]:
    plan = formatter.lower(msgs)
    places = Counter(entry.place for entry in plan.ledger.entries)
    block_places = [
        f"msgs[{index}].content[{number}]" for index, msg in enumerate(msgs) for number, _ in enumerate(msg.blocks)
    ]
    for place in block_places:
        if places[place] != 1:
            yield f"the ledger has {places[place]} entries for {place}, expected one"
    yield from _check_texts(plan, msgs, isinstance(formatter.history, ChatHistory))
    yield from _check_media(plan, msgs)
    yield from _check_raise(formatter, plan, msgs)


def _check_texts(plan: Plan, msgs: Sequence[Msg], is_chat: bool) -> Iterator[str]:
    sent = find_marks("mark", json_text(plan.request))
    texts = [leaf for _, leaf in iterate_scalars(plan.request) if isinstance(leaf, str)]
    dispositions = {entry.place: entry.disposition.word for entry in plan.ledger.entries}
    for place, block in _iterate_blocks(msgs):
        text = str(getattr(block, "text", "")) if isinstance(block, TextBlock) else ""
        count = 0
        for mark in find_marks("mark", text):
            count = len(sent.get(mark, []))
            if count > 1:
                yield f"the text {mark!r} of {place} is sent {count} times, expected once"
            if not count and dispositions.get(place) != "dropped":
                yield f"the text {mark!r} of {place} is not sent, but the ledger does not list it as dropped"
        is_verbatim = is_chat or len(text.splitlines()) == 1  # a history frame indents all lines after the first
        if count == 1 and is_verbatim and not any(text in leaf for leaf in texts):
            yield f"the text of {place} is not sent unchanged"


def _iterate_blocks(msgs: Sequence[Msg]) -> Iterator[tuple[str, Block]]:
    """Yields every block of a conversation with its place, including the blocks inside tool results."""
    for index, msg in enumerate(msgs):
        for number, block in enumerate(msg.blocks):
            place = f"msgs[{index}].content[{number}]"
            yield place, block
            if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
                yield from ((f"{place}.output[{n}]", item) for n, item in enumerate(block.output))


def _check_media(plan: Plan, msgs: Sequence[Msg]) -> Iterator[str]:
    text = json_text(plan.request)
    entries = {entry.place: entry for entry in plan.ledger.entries}
    for place, block in _iterate_blocks(msgs):
        if not isinstance(block, ImageBlock | AudioBlock | VideoBlock | DocumentBlock):
            continue
        source, entry = block.source, entries.get(place)
        data = source.data if isinstance(source, Base64Source) else source.url
        plain_text = source.text if isinstance(source, Base64Source) and block.type == "document" else None
        count = text.count(json.dumps(data, ensure_ascii=False)[1:-1])
        count += text.count(plain_text) if plain_text else 0
        if count > 1:
            yield f"the {block.type} of {place} is sent {count} times, expected once"
        if not count and entry is not None and entry.disposition.word in SENT:
            yield f"the {block.type} of {place} is not sent, but the ledger lists it as {entry.disposition.word}"


def _check_raise(formatter: FormatterBase, plan: Plan, msgs: list[Msg]) -> Iterator[str]:
    strict = type(formatter)(formatter.model, on_loss="raise")
    try:
        strict.lower(msgs)
    except LossError:
        if not plan.ledger.losses:
            yield 'on_loss="raise" raises an error, although the ledger has no loss'
    else:
        if plan.ledger.losses:
            yield f'on_loss="raise" raises no error, although the ledger has the loss {plan.ledger.losses[0]}'


def _order(formatter: FormatterBase, msgs: list[Msg]) -> Iterator[str]:
    """Checks that the texts in the request, except system messages, have the order of the conversation."""
    text = json_text(formatter.lower(msgs).request)
    sent = {mark: places[0] for mark, places in find_marks("mark", text).items()}
    marks = [mark for msg in msgs if msg.role != "system" for mark in find_marks("mark", msg.text)]
    marks = [mark for mark in marks if mark in sent]
    sent_order = sorted(marks, key=sent.__getitem__)
    if marks != sent_order:
        yield f"the texts are sent in the wrong order {sent_order}, expected {marks}"


_CHECKS: Final[tuple[Check, ...]] = (_purity, _pairing, _conservation, _order)
