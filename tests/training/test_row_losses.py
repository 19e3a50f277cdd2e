"""Each part of a sample survives a round trip through a row, or is reported as a loss."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    AudioBlock,
    Base64Source,
    Block,
    ImageBlock,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
)
from agentkit.messages.sources import source_from_url
from agentkit.training import Sample, dump_rows, load_rows
from agentkit.training.rows.row_formats import FORMATS
from agentkit.training.sample import is_reply
from tests.cases import each_case
from tests.conversations import histories
from tests.profiles import examples

_FORMATS: Final = [name for name in FORMATS if name != "stanford_alpaca"]
"""All formats but one whose messages of users have fixed texts."""
_URL: Final = "https://example.org/a.png"
_DATA: Final = "iVBORw0KGgo="
_SCHEMA: Final = {"type": "object", "properties": {"q": {"type": "integer", "default": None}}}
_TOOLS: Final = (Tool("look", "Looks.", _SCHEMA), Tool("move", strict=True))
_EXTRAS: Final[list[dict[str, Any]]] = [
    {},
    {"parallel_tool_calls": False},
    {"chat_template_kwargs": {"enable_thinking": None}},
    {"label": None},
    {"usage": {}, "id": [1]},
    {"agent": "x"},
    {"agent": {"name": "x", "version": "1", "tool_definitions": []}},
    {"agent": {"name": "x", "version": "1"}},
    {"preferred_output": "x", "input": "x"},
]
_BLOCKS: Final[dict[str, Block]] = {
    "text": TextBlock("Hi."),
    "empty text": TextBlock(""),
    "text with a tag": TextBlock("<image>"),
    "refusal": TextBlock("No.", metadata={"refusal": True}),
    "empty refusal": TextBlock("", metadata={"refusal": True}),
    "thinking": ThinkingBlock("Hm."),
    "empty thinking": ThinkingBlock(""),
    "call": ToolUseBlock("call_1", "look", {"q": 1}),
    "call with None": ToolUseBlock("call_1", "look", {"q": None, "a": [{"b": None}]}),
    "call with another id": ToolUseBlock("a", "look", {"q": 1.0}, '{"q": 1.0}'),
    "call with a broken text": ToolUseBlock("call_1", "look", {}, '{"q'),
    "call without an id": ToolUseBlock("", "look", {}),
    "call without a name": ToolUseBlock("call_1", "", {}),
    "result": ToolResultBlock("call_1", "look", "found"),
    "result without a name": ToolResultBlock("call_1", "", ""),
    "result of another tool": ToolResultBlock("call_1", "move", "found"),
    "result without an id": ToolResultBlock("", "look", "found"),
    "failed result": ToolResultBlock("call_1", "look", "found", True),
    "result with the mark of an error": ToolResultBlock("call_1", "look", "[error] found"),
    "result of texts": ToolResultBlock("call_1", "look", [TextBlock("a"), TextBlock("b")]),
    "result of one text": ToolResultBlock("call_1", "look", [TextBlock("a")]),
    "empty result": ToolResultBlock("call_1", "look", []),
    "result with an image": ToolResultBlock("call_1", "look", [TextBlock("a"), ImageBlock(URLSource(_URL))]),
    "failed result with an image": ToolResultBlock("call_1", "look", [ImageBlock(URLSource(_URL))], True),
    "result with a video": ToolResultBlock("call_1", "look", [VideoBlock(URLSource(_URL))]),
    "image": ImageBlock(URLSource(_URL)),
    "image with a type": ImageBlock(URLSource(_URL, "image/webp")),
    "image data": ImageBlock(Base64Source("image/png", _DATA)),
    "image data as a URL": ImageBlock(URLSource(f"data:image/png;base64,{_DATA}")),
    "image with a malformed data URL": ImageBlock(URLSource(f"data:nonsense;base64,{_DATA}")),
    "audio": AudioBlock(Base64Source("audio/wav", _DATA)),
    "audio at a URL": AudioBlock(URLSource("https://example.org/a.wav")),
    "video": VideoBlock(URLSource(_URL)),
    "invalid": InvalidBlock(1, "r", "p"),
    "opaque": OpaqueBlock("openai", {"type": "x"}),
}
_ROLES: Final[tuple[Any, ...]] = ("user", "assistant", "system")
_NAMELESS: Final = ("sharegpt", "alpaca", "input_output", "prompt_completion")
_PAIR_FORMATS: Final = ("alpaca", "input_output", "prompt_completion", "recording")
_CALL: Final = Msg("assistant", [ToolUseBlock("call_1", "look", {})], "assistant")


# -- the parts of a sample that rows contain ---------------------------------------------------------------------


def describe(sample: Sample, format: str) -> dict[str, Any]:
    """Returns the parts of a sample that each format contains or reports. `dump_rows` says which are omitted."""
    weights: list[Any] = [sample.get_weight(index) for index in range(len(sample.msgs))]
    for index, msg in enumerate(sample.msgs):
        if format != "recording" and sample.viewer is not None and is_reply(msg) and msg.name != sample.viewer:
            items = weights[index] if isinstance(weights[index], tuple) else (weights[index],)
            weights[index] = weights[index] if any(items) else 0
        is_written_as_reply = msg.role == "assistant" or bool(msg.tool_uses)
        if format in ("openai", "dspy") and msg.tool_results and is_written_as_reply and not is_reply(msg):
            weights[index] = weights[index] or 0
        if weights[index] == 1 and is_written_as_reply and format not in ("openai", "dspy", "sharegpt", "atif"):
            weights[index] = None
    extra = dict(sample.extra)
    if format == "atif" and sample.viewer and "agent" not in extra:
        extra["agent"] = {"name": sample.viewer, "version": "unknown"}
    ids = {block.id: f"call_{index}" for index, block in enumerate(_list_calls(sample.msgs), 1)}
    return {
        "msgs": _describe_all(sample.msgs, weights, ids if format == "sharegpt" else {}, sample.viewer, format),
        "tools": sample.tools,
        "tokens": sample.tokens,
        "rejected": _describe_all(sample.rejected, [None] * len(sample.rejected), {}, None, format),
        "extra": extra,
    }


def _list_calls(msgs: Any) -> list[ToolUseBlock]:
    return [block for msg in msgs for block in msg.tool_uses]


def _describe_all(msgs: Any, weights: list[Any], ids: dict[str, str], viewer: str | None, format: str) -> Any:
    described: list[Any] = []
    names = {block.id: block.name for block in _list_calls(msgs)}
    for msg, weight in zip(msgs, weights, strict=True):
        results = [_describe_result(block, names, ids) for block in msg.tool_results]
        others = [_describe_block(block, ids) for block in msg.blocks if block.type != "tool_result"]
        name = msg.role if msg.name == viewer and format in _NAMELESS else msg.name
        whole = [(msg.role, name, others or [("text", "")], weight)] if others or not results else []
        described += results + whole if msg.content and msg.blocks[0].type == "tool_result" else whole + results
    return described


def _describe_result(block: ToolResultBlock, names: dict[str, str], ids: dict[str, str]) -> Any:
    items = [_describe_block(item, {}) for item in block.items] or [("text", "")]
    return "result", ids.get(block.id, block.id), block.name or names.get(block.id), items, block.is_error


def _describe_block(block: Block, ids: dict[str, str]) -> Any:
    match block:
        case TextBlock():
            return "refusal" if block.metadata else "text", block.text
        case ThinkingBlock():
            return "thinking", block.thinking
        case ToolUseBlock():
            return "call", ids.get(block.id, block.id), block.name, json.dumps(block.input), block.raw_is_broken
        case ImageBlock() | AudioBlock():
            source = block.source
            if isinstance(source, URLSource) and source.url.startswith("data:"):
                return block.type, source_from_url(source.url)
            return block.type, source
        case _:
            return block


# -- checks ------------------------------------------------------------------------------------------------------


def check_round_trip(format: Any, sample: Sample) -> str:
    """Checks that a sample survives a round trip, is refused, or has a loss, and returns which of them."""
    losses: list[str] = []
    try:
        rows = [*dump_rows(format, [sample], on_loss=lambda place, reason: losses.append(f"{place}: {reason}"))]
    except MessageError:
        return "refused"
    loaded = [*load_rows(format, [json.dumps(row) for row in rows])]
    if losses:
        return "loss"
    assert len(loaded) == len(rows) > 0
    if len(rows) > 1:  # each row trains one reply, and the last row has the whole conversation
        assert format == "trl"
        loaded[-1], sample = replace(loaded[-1], weights=None), replace(sample, weights=None, viewer=None)
    assert describe(loaded[-1], format) == describe(sample, format)
    return "equal"


@st.composite
def _samples(draw: st.DrawFn, msgs: list[Msg]) -> Sample:
    number = st.sampled_from([0, 1, None, None])
    weights = None
    if draw(st.booleans()):
        weights = [draw(number) if draw(st.booleans()) else [draw(number) for _ in msg.blocks] for msg in msgs]
    replies = [index for index, msg in enumerate(msgs) if is_reply(msg)]
    return Sample(
        msgs,
        draw(st.lists(st.sampled_from(_TOOLS), unique_by=id, max_size=2)),
        weights,
        draw(st.sampled_from([None, None, *sorted({msg.name for msg in msgs})])),
        {replies[0]: [1, 2]} if replies and draw(st.integers(0, 9)) == 0 else None,
        rejected=msgs[:1] if draw(st.integers(0, 3)) == 0 else (),
        extra=draw(st.sampled_from(_EXTRAS)),
    )


def _draw_msgs(role: Any = None) -> st.SearchStrategy[Msg]:
    texts = st.sampled_from(["Hi.", ""])
    blocks = st.lists(st.sampled_from([*_BLOCKS.values()]), max_size=2)
    roles = st.sampled_from(_ROLES) if role is None else st.just(role)
    msgs = st.builds(Msg, st.sampled_from(["user", "assistant", "Bob", ""]), texts | blocks, roles)
    # A text beside a result is not trained, but it can become a reply of its own. Another test is about weights.
    return msgs.filter(lambda msg: msg.role != "assistant" or not msg.tool_results)


_MSGS: Final[st.SearchStrategy[list[Msg]]] = st.lists(_draw_msgs(), min_size=1, max_size=3)
_PAIRS: Final[st.SearchStrategy[list[Msg]]] = st.tuples(_draw_msgs("user"), _draw_msgs("assistant")).map(list)


@pytest.mark.parametrize("format", _FORMATS)
def test_a_sample_survives_or_has_a_loss(format: Any) -> None:
    outcomes: set[str] = set()

    @given((_PAIRS if format in _PAIR_FORMATS else _MSGS).flatmap(_samples))
    @examples(300)
    def check(sample: Sample) -> None:
        outcomes.add(check_round_trip(format, sample))

    check()
    assert outcomes - {"refused"}


def test_any_conversation_survives_or_has_a_loss() -> None:
    @given(histories(3).flatmap(_samples), st.sampled_from(_FORMATS))
    @examples(200)
    def check(sample: Sample, format: Any) -> None:
        check_round_trip(format, sample)

    check()


def _check_blocks(format: Any, role: Any, names: tuple[str, ...]) -> str:
    blocks = [_BLOCKS[name] for name in names]
    has_result = any(block.type == "tool_result" for block in blocks)
    msg = Msg(role, blocks, role)
    msgs = [Msg("user", "Where?", "user"), *([_CALL] if has_result else []), msg]
    if role == "user" and format in _PAIR_FORMATS:
        msgs = [msg, Msg("assistant", "There.", "assistant")]
    try:
        return check_round_trip(format, Sample(msgs, rejected=msgs if format == "preference" else ()))
    except AssertionError as error:
        raise AssertionError(f"{role} {names}") from error


@each_case("format", _FORMATS)
def test_each_block_survives_or_has_a_loss(format: Any) -> None:
    blocks = [(role, (name,)) for role in _ROLES for name in _BLOCKS]
    ordinary = ("text", "empty text", "thinking", "call", "result", "image")
    pairs = [("assistant", names) for names in product(ordinary, repeat=2)]
    outcomes = {_check_blocks(format, role, names) for role, names in [*blocks, *pairs]}
    assert "equal" in outcomes


@pytest.mark.slow
@each_case(("format", "role"), [*product(_FORMATS, _ROLES)])
def test_each_pair_of_blocks_survives_or_has_a_loss(format: Any, role: Any) -> None:
    outcomes = [_check_blocks(format, role, names) for names in product(_BLOCKS, repeat=2)]
    assert len(outcomes) == len(_BLOCKS) ** 2


def test_a_weight_of_a_text_beside_a_result_is_a_loss_in_a_prompt() -> None:
    result = ToolResultBlock("call_1", "look", "found")
    mixed = Msg("assistant", [TextBlock("Hi."), result], "assistant")
    msgs = [Msg("user", "Where?", "user"), mixed, Msg("assistant", "There.", "assistant")]
    assert check_round_trip("trl", Sample(msgs, weights=(None, 1, 1))) == "loss"
    [loaded] = load_rows(
        "trl", [json.dumps(row) for row in dump_rows("trl", [Sample(msgs, weights=(None, None, 1))])]
    )
    assert [weight for weight in loaded.weights or () if weight is not None] == [0, 1]


def test_a_value_that_cannot_be_written_is_an_error() -> None:
    call = ToolUseBlock("c1", "look", {"q": 10**5_000})
    msgs = [Msg("user", "Where?", "user"), Msg("assistant", [call], "assistant")]
    with pytest.raises(MessageError, match=r"samples\[0\]: a value cannot be written as JSON"):
        next(dump_rows("sharegpt", [Sample(msgs)]))
