"""Prompt-cache markers, replayed against models of the caches: what a request writes, the next one reads."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Literal, TypeAlias, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    CONTINUE_TURN,
    ChatHistory,
    HistoryPolicy,
    Msg,
    MultiAgentHistory,
    dump_messages,
    load_provider,
)
from agentkit.provider_kit import FormatterBase
from tests.conversations import POLICIES, valid_histories
from tests.profiles import examples
from tests.providers import LOOK, assistant, call, problems, result, system, user
from tests.wire.loopback import expected_body, send

Wire: TypeAlias = tuple[str, str | None]

LOOKING_BACK: Final[tuple[Wire, ...]] = (
    ("anthropic", None),
    ("anthropic", "claude-opus-4-1"),
    ("dashscope", "qwen3.5-plus"),
    ("dashscope-compatible", "qwen3-max"),
)
"""Wires whose cache is read from at most 20 positions behind a marker, of which there are four."""

EXACT: Final[tuple[Wire, ...]] = (("openai", "gpt-5.6-sol"), ("openai-responses", "gpt-6-astra"))
"""Wires whose cache is read at a marker alone, of which any number may be there."""

WIRES: Final = (*LOOKING_BACK, *EXACT)
BOUND: Final = 39
"""How many positions anybody may add between two requests and still be found, with one marker on the prompt."""

_MARKERS: Final = ("cache_control", "prompt_cache_breakpoint")

# -- requests as their caches see them -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """One position: what it is, in whose turn, whether it is marked, and whether every reading counts it."""

    said: str
    value: Any
    marked: bool = False
    counted: bool = True


def _stripped(value: Any) -> Any:
    """JSON without any marker."""
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        return {key: _stripped(item) for key, item in found.items() if key not in _MARKERS}
    return [_stripped(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _parts(content: Any) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def _block(place: str, value: Any, counted: bool = True) -> Block:
    marked = isinstance(value, dict) and any(key in value for key in _MARKERS)
    return Block(f"{place} {json.dumps(_stripped(value), ensure_ascii=False)}", value, marked, counted)


def blocks_of(provider: str, request: dict[str, Any]) -> list[Block]:
    """A request's positions in the order of its prefix."""
    blocks = [_block("tool", tool, counted=False) for tool in request.get("tools", [])]
    if provider == "anthropic":
        prompt = request.get("system", [])
        texts = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else prompt
        blocks += [_block("system", text, counted=False) for text in texts]
    for number, turn in enumerate(request.get("messages", request.get("input", []))):
        head = {key: item for key, item in turn.items() if key not in ("content", "output", "tool_calls")}
        place = f"{number} {json.dumps(head, ensure_ascii=False)}"
        content = turn.get("content", turn.get("output"))
        blocks += [_block(place, part, counted=bool(content)) for part in _parts(content)]
        blocks += [_block(place, made, counted=False) for made in turn.get("tool_calls", [])]
    return blocks


def _last_marker(blocks: Sequence[Block]) -> int:
    return max((at for at, block in enumerate(blocks) if block.marked), default=-1)


def _count(request: dict[str, Any]) -> int:
    return sum(json.dumps(request).count(f'"{key}"') for key in _MARKERS)


@dataclass(slots=True)
class Cache:
    """A provider's cache: entries are whole prefixes, less the markers."""

    reading: Literal["generous", "sparing", "exact"]
    entries: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])

    def send(self, blocks: Sequence[Block]) -> int:
        """Send a request: how many of its blocks were read, then its prefixes are written."""
        said = [block.said for block in blocks]
        marked = [at for at, block in enumerate(blocks) if block.marked]
        if self.reading == "exact":
            found = [at + 1 for at in marked[-50:] if tuple(said[: at + 1]) in self.entries]
            marked = marked[-3:]
        else:
            found = [self._look_back(blocks, said, at) for at in marked]
        self.entries |= {tuple(said[: at + 1]) for at in marked}
        return max(found, default=0)

    def _look_back(self, blocks: Sequence[Block], said: list[str], at: int) -> int:
        left = 20
        for place in range(at, -1, -1):
            if left and tuple(said[: place + 1]) in self.entries:
                return place + 1
            left -= blocks[place].counted or self.reading == "generous"
            if left <= 0:
                break
        return 0


def _caches(wire: Wire) -> list[Cache]:
    return [Cache("exact")] if wire in EXACT else [Cache("generous"), Cache("sparing")]


def _formatter(wire: Wire, history: HistoryPolicy, mode: str = "auto") -> FormatterBase:
    make: Any = load_provider(wire[0]).chat_formatter
    made = make(wire[1], history=history, cache_breakpoints=mode)
    assert isinstance(made, FormatterBase)
    return made


def _replay(wire: Wire, history: HistoryPolicy, steps: Sequence[list[Msg]], **asked: Any) -> None:
    """Each request reads what the last one marked last, unless more was added than can be.

    Tools are given: those that a request declares since its history calls them change from one to the next.
    """
    asked = {"tools": [LOOK], **asked}
    formatter = _formatter(wire, history)
    for cache in _caches(wire):
        msgs: list[Msg] = []
        before: list[Block] = []
        for step in steps:
            msgs += step
            blocks = blocks_of(wire[0], formatter.lower(msgs, **asked).request)
            read, wanted = cache.send(blocks), _last_marker(before) + 1
            assert [block.said for block in blocks[:wanted]] == [block.said for block in before[:wanted]]
            if _last_marker(blocks) + 1 - wanted <= BOUND:
                assert read >= wanted, (cache.reading, read, wanted, [block.said for block in blocks])
            before = blocks


# -- properties ------------------------------------------------------------------------------------------------

_started: st.SearchStrategy[list[Msg]] = st.just([user("Hello."), assistant("Hello, Bob.")])
_policies: st.SearchStrategy[HistoryPolicy] = st.sampled_from(POLICIES)


@st.composite
def _lines(draw: st.DrawFn) -> list[Msg]:
    """Many messages at once, of few speakers."""
    speakers = draw(st.lists(st.sampled_from(("Bob", "Alice", "Friday")), min_size=1, max_size=30))
    return [user(f"Line {at}.", name=name) for at, name in enumerate(speakers)]


@st.composite
def _loop_steps(draw: st.DrawFn) -> list[Msg]:
    """A step of a loop of tools, with any number of parallel calls."""
    count = draw(st.integers(1, 45))
    calls = [call(f"c{at}") for at in range(count)]
    results = [result(f"c{at}", f"Result {at}.") for at in range(count)]
    if draw(st.booleans()):
        return [assistant(*calls), system(*results)]
    return [assistant("Looking.", *calls), *(system(one) for one in results)]


_steps = st.lists(st.one_of(valid_histories(3), _lines(), _loop_steps()), min_size=1, max_size=5)


@pytest.mark.parametrize("wire", WIRES)
@examples(60)
@given(_started, _steps, _policies)
def test_a_request_reads_what_the_last_one_wrote(
    wire: Wire, start: list[Msg], steps: list[list[Msg]], policy: HistoryPolicy
) -> None:
    _replay(wire, policy, [start, *steps])


@pytest.mark.parametrize("wire", WIRES)
@examples(30)
@given(st.lists(valid_histories(3), min_size=2, max_size=4), _policies)
def test_a_request_reads_what_the_last_one_wrote_from_the_first_message_on(
    wire: Wire, steps: list[list[Msg]], policy: HistoryPolicy
) -> None:
    _replay(wire, policy, steps)


@pytest.mark.parametrize("choice", ["required", "look", "none"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_choice_of_tool_moves_no_marker_off_what_stays(wire: Wire, choice: str) -> None:
    steps = [[system("You are Friday."), user("Look.")], [assistant(call("a")), system(result("a", "A cat."))]]
    _replay(
        wire, ChatHistory(), [*steps, [assistant("A cat."), user("And now?")]], tools=[LOOK], tool_choice=choice
    )


@pytest.mark.parametrize("provider", ["dashscope", "dashscope-compatible"])
def test_a_schema_in_words_is_behind_the_marker_of_the_prompt(provider: str) -> None:
    formatter = _formatter((provider, None), ChatHistory())
    cache = Cache("generous")
    cache.send(blocks_of(provider, formatter.lower([system("S."), user("Q.")]).request))
    asked = formatter.lower([system("S."), user("Q.")], response_format={"type": "object"}).request
    assert [block.marked for block in blocks_of(provider, asked)] == [True, False, True]
    assert cache.send(blocks_of(provider, asked)) == 1


@pytest.mark.parametrize("calls", [1, 9, 10, 11, 19, 20, 21, 60, 150])
@pytest.mark.parametrize("wire", LOOKING_BACK)
def test_a_step_of_a_loop_of_tools_may_add_any_number_of_calls(wire: Wire, calls: int) -> None:
    step = [
        assistant(*(call(f"c{at}") for at in range(calls))),
        *(system(result(f"c{at}", "A.")) for at in range(calls)),
    ]
    formatter = _formatter(wire, ChatHistory())
    msgs = [system("S."), user("Go.")]
    for cache in _caches(wire):
        before: list[Block] = []
        for stop in (2, 4, 6, 8):
            told = [*msgs, *step * ((stop - 2) // 2)]
            blocks = blocks_of(wire[0], formatter.lower(told, tools=[LOOK]).request)
            assert cache.send(blocks) >= _last_marker(before) + 1
            before = blocks


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("added", [1, 19, 20, 21, 38, 39])
def test_a_frame_may_grow_by_lines_up_to_the_bound(wire: Wire, added: int) -> None:
    lines = [user(f"Line {at}.", name=("Alice", "Bob")[at % 2]) for at in range(5 + 4 * added)]
    grown = [lines[: 5 + added * count] for count in range(5)]
    steps = [[system("S."), *grown[0]], *(now[len(then) :] for then, now in pairwise(grown))]
    _replay(wire, MultiAgentHistory(), steps)
    formatter = _formatter(wire, MultiAgentHistory())
    assert _last_marker(blocks_of(wire[0], formatter.lower([system("S."), *lines]).request)) > 4 * added


@pytest.mark.parametrize("wire", WIRES)
def test_what_a_cut_leaves_still_hits_the_prompt(wire: Wire) -> None:
    formatter = _formatter(wire, ChatHistory())
    talk = [one for at in range(30) for one in (user(f"Q{at}."), assistant(f"A{at}."))]
    for cache in _caches(wire):
        cache.send(blocks_of(wire[0], formatter.lower([system("S."), user("Q.")], tools=[LOOK]).request))
        cut = blocks_of(wire[0], formatter.lower([system("S."), *talk[40:], user("Q.")], tools=[LOOK]).request)
        assert cache.send(cut) == 2, "the tool and the system prompt"


@pytest.mark.parametrize("wire", WIRES)
@examples(60)
@given(valid_histories(6), _policies)
def test_markers_lie_on_what_stays_alone_and_change_nothing_else(
    wire: Wire, msgs: list[Msg], policy: HistoryPolicy
) -> None:
    stored = dump_messages(msgs)
    plan = _formatter(wire, policy).lower(msgs)
    request = plan.request
    plain = _formatter(wire, policy, "off").lower(msgs).request
    assert problems(wire[0], request) == problems(wire[0], plain)
    blocks = blocks_of(wire[0], request)
    marked = [block for block in blocks if block.marked]
    assert json.dumps(request).count('"cache_control"') <= 4
    assert _count(request) == len(marked)
    assert not [block for block in marked if "thinking" in block.value.get("type", "")]
    if any(
        made.reason == "the API requires a user turn at the end, so one was added"
        for made in plan.ledger.syntheses
    ):
        assert CONTINUE_TURN in blocks[-1].said
        assert not blocks[-1].marked
    if isinstance(policy, MultiAgentHistory) and '"role": "user"' in blocks[-1].said:
        assert not (blocks[-1].marked and blocks[-1].value.get("text") == f"\n</{policy.tag}>")
    assert _shown(wire, _stripped(request)) == _shown(wire, plain)
    assert dump_messages(msgs) == stored
    assert _formatter(wire, policy).lower(msgs).request == request


def _shown(wire: Wire, request: dict[str, Any]) -> list[object]:
    """A request without the form of its texts: a list of one is a string; in the compatible mode, its letters."""
    rest = {key: value for key, value in request.items() if key not in ("system", "messages", "input")}
    turns = cast("list[dict[str, Any]]", request.get("messages", request.get("input")))
    return [rest, _said(wire, request.get("system")), *(_said_in(wire, turn) for turn in turns)]


def _said_in(wire: Wire, turn: dict[str, Any]) -> dict[str, object]:
    return {key: _said(wire, item) if key in ("content", "output") else item for key, item in turn.items()}


def _said(wire: Wire, content: Any) -> object:
    parts = [_text(part) for part in _parts(content)]
    if wire[0] == "dashscope-compatible":
        texts = "".join(part for part in parts if isinstance(part, str))
        return texts.replace("\n", ""), [part for part in parts if not isinstance(part, str)]
    return parts


def _text(part: Any) -> object:
    return cast("dict[str, Any]", part).get("text", part) if isinstance(part, dict) else part


# -- where they are not ----------------------------------------------------------------------------------------

_TALK: Final = [
    system("You are Friday."),
    user("Look at the library."),
    assistant("I will.", call("a", place="library"), call("b", place="park")),
    system(result("a", "Open.")),
    system(result("b", "Green.")),
]


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("openai", None, 0),
        ("openai", "gpt-5.5", 0),
        ("openai", "gpt-4.1", 0),
        ("openai", "gpt-35-turbo", 0),
        ("openai", "gpt-5", 0),
        ("openai", "gpt-5.6", 4),
        ("openai", "openai/gpt-5.6-luna", 4),
        ("openai", "gpt-5.6-terra", 0),
        ("openai", "gpt-6.2-astra", 4),
        ("openai-responses", None, 0),
        ("openai-responses", "gpt-5.5", 0),
        ("openai-responses", "gpt-6-sol", 4),
        ("deepseek", None, 0),
        ("vllm", "gpt-6-sol", 0),
        ("dashscope", "qwen-plus", 0),
        ("dashscope", None, 3),
        ("dashscope-compatible", None, 3),
        ("anthropic", None, 3),
    ],
)
def test_markers_go_to_models_that_are_known_to_take_them(provider: str, model: str | None, expected: int) -> None:
    request = _formatter((provider, model), ChatHistory()).lower(_TALK).request
    assert problems(provider, request) == []
    assert _count(request) == expected
    if not expected:
        assert request == _formatter((provider, model), ChatHistory(), "off").lower(_TALK).request


@pytest.mark.parametrize(
    "provider", ["openai", "openai-responses", "dashscope", "dashscope-compatible", "deepseek"]
)
def test_nothing_is_marked_unless_asked_for(provider: str) -> None:
    assert _count(load_provider(provider).chat_formatter("gpt-6-sol").lower(_TALK).request) == 0


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "dashscope", "dashscope-compatible"])
def test_an_unknown_option_is_refused(provider: str) -> None:
    with pytest.raises(ValueError, match="'always' is unknown"):
        _formatter((provider, None), ChatHistory(), "always")


@pytest.mark.parametrize("wire", EXACT)
def test_no_more_markers_are_sent_than_are_looked_at(wire: Wire) -> None:
    lines = [user(f"Line {at}.") for at in range(200)]
    assert _count(_formatter(wire, MultiAgentHistory()).lower([system("S."), *lines]).request) == 51


def test_a_marker_of_openai_says_that_it_is_explicit() -> None:
    request = _formatter(EXACT[0], ChatHistory()).lower([user("Hi.")]).request
    part = {"type": "text", "text": "Hi.", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert request == {"messages": [{"role": "user", "name": "Bob", "content": [part]}]}
    request = _formatter(EXACT[1], ChatHistory()).lower([user("Hi.")]).request
    message = {"type": "message", "role": "user", "content": [{**part, "type": "input_text"}]}
    assert request == {"input": [message]}


# -- through the real SDKs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", [ChatHistory(), MultiAgentHistory(viewer="Friday")], ids=["chat", "viewer"])
@pytest.mark.parametrize("wire", WIRES)
def test_the_real_sdk_sends_the_markers(wire: Wire, history: HistoryPolicy) -> None:
    request = _formatter(wire, history).lower(_TALK, tools=[LOOK]).request
    captured = asyncio.run(send(wire[0], request))
    assert captured.other_paths == []
    assert captured.body == expected_body(wire[0], request)
    assert _count(captured.body) == _count(request) > 0
