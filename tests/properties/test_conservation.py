"""Content that the ledger records as carried, moved or merged is in the request.

Tested with generated conversations, every provider, both history policies, viewers and budgets.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from agentkit import (
    AudioBlock,
    Base64Source,
    Block,
    Budget,
    BudgetError,
    CharacterTokenCounter,
    ChatHistory,
    Disposition,
    DocumentBlock,
    HistoryPolicy,
    ImageBlock,
    LossError,
    MediaBlock,
    Msg,
    MultiAgentHistory,
    OpaqueBlock,
    Plan,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.provider_kit import FormatterBase, LegalConversation, Request, RequestSpec
from tests.cases import each_case
from tests.conftest import ECHO, EchoFormatter
from tests.conversations import DATA, POLICIES, TARGETS, Markers, OnLoss, Target, add_markers, histories
from tests.profiles import examples
from tests.properties.test_invariants import as_json, describe_case, find_problems, get_strings, run_async
from tests.providers import MESSAGE_PROVIDERS

SENT = (Disposition.CARRIED, Disposition.MOVED, Disposition.MERGED)


def sees_system_messages(msg: Msg) -> bool:
    """Returns True for system messages."""
    return msg.role == "system" and not msg.tool_results


def sees_all_but_bob(msg: Msg) -> bool:
    """Returns True for messages of all speakers except Bob."""
    return msg.name != "Bob"


_VIEWS = (
    MultiAgentHistory(visible=sees_system_messages),
    MultiAgentHistory(viewer="Alice", visible=sees_all_but_bob),
    MultiAgentHistory(viewer="Friday", other_agents_tools="drop", visible=sees_all_but_bob),
)
policies: SearchStrategy[HistoryPolicy] = st.sampled_from((*POLICIES, *_VIEWS))
on_losses: SearchStrategy[OnLoss] = st.sampled_from(("describe", "drop", "raise"))


_Item: TypeAlias = TextBlock | MediaBlock


def _create_block(name: str) -> _Item:
    blocks: dict[str, _Item] = {
        "text": TextBlock("Hello."),
        "image": ImageBlock(Base64Source("image/png", DATA["image/png"])),
        "image URL": ImageBlock(URLSource("https://example.com/a.png")),
        "image data URL": ImageBlock(URLSource(f"data:image/png;base64,{DATA['image/png']}")),
        "audio": AudioBlock(Base64Source("audio/wav", DATA["audio/wav"])),
        "document": DocumentBlock(Base64Source("application/pdf", DATA["application/pdf"])),
        "text document": DocumentBlock(Base64Source("text/plain", DATA["text/plain"])),
    }
    return blocks[name]


_block_names = st.sampled_from(
    ("text", "image", "image URL", "image data URL", "audio", "document", "text document", "image")
)
_contents = st.lists(_block_names.map(_create_block), min_size=1, max_size=3).map(tuple)
_messages: SearchStrategy[list[Msg]] = st.builds(
    Msg,
    st.sampled_from(("Bob", "Alice", "Friday", "system")),
    _contents,
    st.sampled_from(("system", "system", "assistant", "user")),
).map(lambda msg: [msg])


def _as_exchange(
    name: str, content: tuple[Any, ...], output: tuple[Any, ...], is_error: bool, variant: int
) -> list[Msg]:
    call = Msg(name, (*content, ToolUseBlock("call_1", "look", {})), "assistant")
    result = Msg("tool", (ToolResultBlock("call_1", "look", output, is_error),), "system")
    return [[call, result], [call], [result], [result, call]][variant]


_exchanges = st.builds(
    _as_exchange, st.sampled_from(("Bob", "Friday")), st.one_of(st.just(()), _contents), _contents, st.booleans(),
    st.sampled_from((0, 0, 0, 1, 2, 3)),
)  # fmt: skip
media_histories: SearchStrategy[list[Msg]] = st.lists(
    st.one_of(_messages, _messages, _exchanges), min_size=1, max_size=5
).map(lambda pieces: [msg for piece in pieces for msg in piece])
"""Short conversations with media in system prompts, in other messages, and in tool results."""


def find_missing(plan: Plan, msgs: Sequence[Msg], markers: Markers, has_call_ids: bool) -> list[tuple[str, str]]:
    """Returns content that the ledger records as sent and the request does not contain, with its places."""
    body, leaves = as_json(plan.request), {*get_strings(plan.request)}
    by_place: dict[str, list[str]] = {}
    for table in (markers.texts, markers.results, markers.calls, markers.thoughts, markers.media, markers.parts):
        for mark, place in table.items():
            by_place.setdefault(place, []).append(mark)
    missing_content: list[tuple[str, str]] = []
    for entry, block in zip(plan.ledger.entries, _all_blocks(msgs), strict=True):
        if entry.disposition not in SENT:
            continue
        reasons = (entry.reason, *entry.details)
        as_text = any(
            "in the user turn that contains the history" in reason or "written as text" in reason
            for reason in reasons
        )
        if isinstance(block, ThinkingBlock) and block.state and block.state.redacted_data:
            missing_content += [(entry.place, "redacted data")] if block.state.redacted_data not in body else []
            continue
        missing_content += [
            (entry.place, mark) for mark in by_place.get(entry.place, ()) if not Markers.count(mark, body)
        ]
        if isinstance(block, ToolUseBlock) and not as_text:
            missing_content += (
                [(entry.place, block.name)] if _is_absent(block.name, plan.tool_names, leaves) else []
            )
        if isinstance(block, ToolUseBlock | ToolResultBlock) and not as_text and has_call_ids:
            missing_content += [(entry.place, block.id)] if _is_absent(block.id, plan.call_ids, leaves) else []
        if isinstance(block, MediaBlock | OpaqueBlock) and entry.place not in by_place:
            missing_content += [(entry.place, text) for text in _get_required_texts(block) if text not in body]
    return missing_content


def _is_absent(name: str, rewritten: dict[str, str], leaves: set[str]) -> bool:
    """Returns True if the request contains neither a name nor the rewritten name."""
    return not ({name} | {new for new, old in rewritten.items() if old == name}) & leaves


def _get_required_texts(block: Any) -> list[str]:
    """Returns the text that the request must contain for media and opaque blocks without a mark."""
    if isinstance(block, OpaqueBlock):
        return [json.dumps(leaf, ensure_ascii=False) for leaf in get_strings(block.data)]
    source: Any = block.source
    if isinstance(source, Base64Source):
        return ["".join(source.data.split())]
    if source.scheme == "data":
        return [source.url.rpartition(",")[2]]
    return [json.dumps(source.url, ensure_ascii=False)[1:-1]]


def _all_blocks(msgs: Sequence[Msg]) -> Iterator[Block]:
    for msg in msgs:
        for block in msg.blocks:
            yield block
            if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
                yield from block.output


_NO_CALL_IDS = frozenset({"ollama"})


def check_sent_content(
    target: Target, formatter: FormatterBase, plan: Plan, msgs: Sequence[Msg], markers: Markers
) -> None:
    missing_content = find_missing(plan, msgs, markers, target.provider not in _NO_CALL_IDS)
    assert not missing_content, describe_case(
        target, formatter, (missing_content, plan.ledger.to_dict(), plan.request)
    )


@examples(40)
@given(st.one_of(media_histories, histories(5)), policies, on_losses)
def test_content_that_the_ledger_records_as_sent_is_in_the_request(
    msgs: list[Msg], policy: HistoryPolicy, on_loss: OnLoss
) -> None:
    msgs, markers = add_markers(msgs)
    for target in TARGETS:
        formatter = target.formatter(policy, on_loss)
        try:
            plan = formatter.lower(msgs)
        except LossError:
            continue
        check_sent_content(target, formatter, plan, msgs, markers)
        assert not find_problems(target, plan.request), describe_case(
            target, formatter, find_problems(target, plan.request)
        )


@examples(20)
@given(st.one_of(media_histories, histories(6)), policies, on_losses, st.integers(10, 110))
def test_content_that_the_ledger_records_as_sent_is_in_the_request_within_a_budget(
    msgs: list[Msg], policy: HistoryPolicy, on_loss: OnLoss, share: int
) -> None:
    msgs, markers = add_markers(msgs)

    async def check_all() -> None:
        for target in TARGETS:
            counter = CharacterTokenCounter(media_tokens=50)
            total = await counter.count(await target.formatter(policy).format(msgs), target.formatter(policy))
            formatter = target.formatter(policy, on_loss, Budget(max(1, total * share // 100), counter))
            try:
                plan = await formatter.plan(msgs)
            except (LossError, BudgetError):
                continue
            check_sent_content(target, formatter, plan, msgs, markers)

    run_async(check_all)


_HISTORIES: dict[str, list[Msg]] = {
    "only a system prompt": [Msg("system", [TextBlock("See."), _create_block("image")], "system")],
    "a system prompt without text": [Msg("system", [_create_block("image")], "system")],
    "two system messages": [Msg("system", "See.", "system"), Msg("Guide", [_create_block("image")], "system")],
    "before an assistant": [
        Msg("system", [_create_block("image")], "system"),
        Msg("Friday", "Hello.", "assistant"),
    ],
    "before a call": [
        Msg("system", [_create_block("image")], "system"),
        Msg("Friday", [ToolUseBlock("c1", "look", {})], "assistant"),
        Msg("tool", [ToolResultBlock("c1", "look", [_create_block("image")])], "system"),
    ],
    "a late system message": [
        Msg("Bob", "Hi.", "user"),
        Msg("system", [TextBlock("See."), _create_block("image")], "system"),
    ],
    "a late system message without text": [
        Msg("Bob", "Hi.", "user"),
        Msg("system", [_create_block("image")], "system"),
    ],
    "an assistant message": [Msg("Friday", [_create_block("image")], "assistant")],
    "a result without a call": [Msg("tool", [ToolResultBlock("c1", "look", [_create_block("image")])], "system")],
    "the viewer sees only system messages": [
        Msg("system", [_create_block("image")], "system"),
        Msg("Bob", "Hi.", "user"),
        Msg("Friday", "Hi.", "assistant"),
    ],
}


@pytest.mark.anyio
@each_case("provider", MESSAGE_PROVIDERS)
@each_case("history", {"chat": ChatHistory(), "viewer": MultiAgentHistory(viewer="Friday"), "visible": _VIEWS[0]})
async def test_an_image_in_any_place_is_sent(history: HistoryPolicy, provider: str) -> None:
    target = Target(provider, "qwen3-vl-plus" if provider == "dashscope" else None)
    for (place, place_msgs), budget in product(_HISTORIES.items(), (None, Budget(100_000))):
        msgs, markers = add_markers(place_msgs)
        formatter = target.formatter(history, budget=budget)
        plan = await formatter.plan(msgs)
        check_sent_content(target, formatter, plan, msgs, markers)
        (entry,) = [entry for entry in plan.ledger.entries if entry.kind == "image"][:1]
        invisible = history is _VIEWS[0] and not sees_system_messages(msgs[int(entry.place[5])])
        described = provider == "deepseek"
        if not invisible and not described and place != "before a call":
            assert entry.disposition in SENT, (place, entry)


class OriginCheckingFormatter(EchoFormatter):
    """Formatter of a target with many restrictions, which checks that each block has an origin."""

    base = ECHO.override(
        {
            "turns.speaker_names": False,
            "turns.merge": True,
            "turns.one_system": True,
            "turns.late_system": "line",
            "turns.first_user": True,
            "turns.last_user": True,
            "tools.results": "together",
            "tools.results_in_order": True,
            "media.result_kinds": frozenset(),
            "media.document": None,
        }
    )

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        for turns in (legal.system, legal.turns):
            for msg, origin in zip(turns.msgs, turns.origins, strict=True):
                assert isinstance(origin, int) or len(origin) == len(msg.blocks), (msg, origin)
        return super().convert(legal, task)


@examples(150)
@given(st.one_of(media_histories, histories(6)), policies, on_losses)
def test_every_converted_block_has_a_single_origin(
    msgs: list[Msg], policy: HistoryPolicy, on_loss: OnLoss
) -> None:
    for formatter in (
        OriginCheckingFormatter(history=policy),
        OriginCheckingFormatter(history=policy, on_loss=on_loss),
    ):
        with contextlib.suppress(LossError):
            formatter.lower(msgs)
