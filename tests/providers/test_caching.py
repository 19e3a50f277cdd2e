"""Prompt-cache markers, tested with models of the caches: each request reads the entries of the previous one."""

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
from tests.cases import each_case
from tests.conversations import POLICIES, valid_histories
from tests.profiles import examples
from tests.providers import LOOK, assistant, call, problems, result, system, user
from tests.wire.loopback import get_expected_body, send

Target: TypeAlias = tuple[str, str | None]

LOOKING_BACK: Final[tuple[Target, ...]] = (
    ("anthropic", None),
    ("anthropic", "claude-opus-4-1"),
    ("dashscope", "qwen3.5-plus"),
    ("dashscope-compatible", "qwen3-max"),
)
"""Targets with at most four markers, whose cache is searched at most 20 positions back from each marker."""

EXACT: Final[tuple[Target, ...]] = (("openai", "gpt-5.6-sol"), ("openai-responses", "gpt-6-astra"))
"""Targets with any number of markers, whose cache is read only at a marker."""

TARGETS: Final = (*LOOKING_BACK, *EXACT)
BOUND: Final = 39
"""Positions that a request may add so that the cache still matches, with one marker on the prompt."""

_MARKERS: Final = ("cache_control", "prompt_cache_breakpoint")

# -- models of the caches --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Block:
    """Position of a request: text, value and its marker. Caches count it unless `counted` is False."""

    text: str
    value: Any
    marked: bool = False
    counted: bool = True


def _remove_markers(value: Any) -> Any:
    """Returns JSON without any marker."""
    if isinstance(value, dict):
        data = cast("dict[str, Any]", value)
        return {key: _remove_markers(item) for key, item in data.items() if key not in _MARKERS}
    return [_remove_markers(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _parts(content: Any) -> list[Any]:
    return cast("list[Any]", content) if isinstance(content, list) else [content]


def _block(place: str, value: Any, counted: bool = True) -> Block:
    marked = isinstance(value, dict) and any(key in value for key in _MARKERS)
    return Block(f"{place} {json.dumps(_remove_markers(value), ensure_ascii=False)}", value, marked, counted)


def list_blocks(provider: str, request: dict[str, Any]) -> list[Block]:
    """Returns the positions of a request in the order of its prefix."""
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
        blocks += [_block(place, call, counted=False) for call in turn.get("tool_calls", [])]
    return blocks


def _last_marker(blocks: Sequence[Block]) -> int:
    return max((index for index, block in enumerate(blocks) if block.marked), default=-1)


def _count(request: dict[str, Any]) -> int:
    return sum(json.dumps(request).count(f'"{key}"') for key in _MARKERS)


@dataclass(slots=True)
class Cache:
    """Prompt cache of a provider. Its entries are complete prefixes without the markers."""

    reading: Literal["generous", "sparing", "exact"]
    entries: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])

    def send(self, blocks: Sequence[Block]) -> int:
        """Returns how many blocks of a request are in the cache, and adds the prefixes of the request."""
        texts = [block.text for block in blocks]
        marked = [index for index, block in enumerate(blocks) if block.marked]
        if self.reading == "exact":
            hits = [index + 1 for index in marked[-50:] if tuple(texts[: index + 1]) in self.entries]
            marked = marked[-3:]
        else:
            hits = [self._look_back(blocks, texts, index) for index in marked]
        self.entries |= {tuple(texts[: index + 1]) for index in marked}
        return max(hits, default=0)

    def _look_back(self, blocks: Sequence[Block], texts: list[str], index: int) -> int:
        remaining = 20
        for place in range(index, -1, -1):
            if remaining and tuple(texts[: place + 1]) in self.entries:
                return place + 1
            remaining -= blocks[place].counted or self.reading == "generous"
            if remaining <= 0:
                break
        return 0


def _caches(target: Target) -> list[Cache]:
    return [Cache("exact")] if target in EXACT else [Cache("generous"), Cache("sparing")]


def _formatter(target: Target, history: HistoryPolicy, mode: str = "auto") -> FormatterBase:
    make: Any = load_provider(target[0]).chat_formatter
    formatter = make(target[1], history=history, cache_breakpoints=mode)
    assert isinstance(formatter, FormatterBase)
    return formatter


def _replay(target: Target, history: HistoryPolicy, steps: Sequence[list[Msg]], **asked: Any) -> None:
    """Asserts that each request reads the last entry of the previous request, unless it adds too many blocks.

    The tools are explicit: tools that a request declares for the calls of its history change between requests.
    """
    asked = {"tools": [LOOK], **asked}
    formatter = _formatter(target, history)
    requests: list[list[Block]] = []
    msgs: list[Msg] = []
    for step in steps:
        msgs += step
        requests.append(list_blocks(target[0], formatter.lower(msgs, **asked).request))
    for cache in _caches(target):
        before: list[Block] = []
        for blocks in requests:
            read, wanted = cache.send(blocks), _last_marker(before) + 1
            assert [block.text for block in blocks[:wanted]] == [block.text for block in before[:wanted]]
            if _last_marker(blocks) + 1 - wanted <= BOUND:
                assert read >= wanted, (cache.reading, read, wanted, [block.text for block in blocks])
            before = blocks


# -- properties ------------------------------------------------------------------------------------------------

_started: st.SearchStrategy[list[Msg]] = st.just([user("Hello."), assistant("Hello, Bob.")])
_policies: st.SearchStrategy[HistoryPolicy] = st.sampled_from(POLICIES)


@st.composite
def _lines(draw: st.DrawFn) -> list[Msg]:
    """Strategy for many messages of few speakers."""
    speakers = draw(st.lists(st.sampled_from(("Bob", "Alice", "Friday")), min_size=1, max_size=30))
    return [user(f"Line {index}.", name=name) for index, name in enumerate(speakers)]


@st.composite
def _loop_steps(draw: st.DrawFn) -> list[Msg]:
    """Strategy for a step of a tool loop, with any number of parallel calls."""
    count = draw(st.integers(1, 45))
    calls = [call(f"c{index}") for index in range(count)]
    results = [result(f"c{index}", f"Result {index}.") for index in range(count)]
    if draw(st.booleans()):
        return [assistant(*calls), system(*results)]
    return [assistant("Looking.", *calls), *(system(block) for block in results)]


_steps = st.lists(st.one_of(valid_histories(3), _lines(), _loop_steps()), min_size=1, max_size=5)


@each_case("target", TARGETS)
@each_case("output", ["A cat.", " "])
@each_case("answered", ["a", "b"])
def test_the_result_of_an_interrupted_call_gets_no_marker(target: Target, output: str, answered: str) -> None:
    msgs = [system("S."), user("Look."), assistant(call("a"), call("b")), system(result(answered, output))]
    request = _formatter(target, ChatHistory()).lower(msgs).request
    marked = [json.dumps(block.value) for block in list_blocks(target[0], request) if block.marked]
    has_marker = output != " " or target[0] == "anthropic"  # Anthropic's marker is beside the text
    assert len(marked) == 2 + has_marker
    assert not any("interrupted" in text for text in marked)


@examples(60)
@given(_started, _steps, _policies)
@each_case("target", TARGETS)
def test_a_request_reads_the_cache_entries_of_the_previous_request(
    target: Target, start: list[Msg], steps: list[list[Msg]], policy: HistoryPolicy
) -> None:
    _replay(target, policy, [start, *steps])


@examples(30)
@given(st.lists(valid_histories(3), min_size=2, max_size=4), _policies)
@each_case("target", TARGETS)
def test_a_request_reads_the_cache_entries_of_the_previous_request_from_the_first_message_on(
    target: Target, steps: list[list[Msg]], policy: HistoryPolicy
) -> None:
    _replay(target, policy, steps)


@each_case("choice", ["required", "look", "none"])
@each_case("target", TARGETS)
def test_a_tool_choice_moves_no_marker_away_from_the_stable_prefix(target: Target, choice: str) -> None:
    steps = [[system("You are Friday."), user("Look.")], [assistant(call("a")), system(result("a", "A cat."))]]
    _replay(
        target, ChatHistory(), [*steps, [assistant("A cat."), user("And now?")]], tools=[LOOK], tool_choice=choice
    )


@pytest.mark.parametrize("provider", ["dashscope", "dashscope-compatible"])
def test_a_schema_as_text_follows_the_marker_of_the_prompt(provider: str) -> None:
    formatter = _formatter((provider, None), ChatHistory())
    cache = Cache("generous")
    cache.send(list_blocks(provider, formatter.lower([system("S."), user("Q.")]).request))
    asked = formatter.lower([system("S."), user("Q.")], response_format={"type": "object"}).request
    assert [block.marked for block in list_blocks(provider, asked)] == [True, False, True]
    assert cache.send(list_blocks(provider, asked)) == 1


@each_case("calls", [1, 9, 10, 11, 19, 20, 21, 60, 150])
@pytest.mark.parametrize("target", LOOKING_BACK)
def test_a_step_of_a_loop_of_tools_may_add_any_number_of_calls(target: Target, calls: int) -> None:
    step = [
        assistant(*(call(f"c{index}") for index in range(calls))),
        *(system(result(f"c{index}", "A.")) for index in range(calls)),
    ]
    formatter = _formatter(target, ChatHistory())
    msgs = [system("S."), user("Go.")]
    conversations = [[*msgs, *step * count] for count in range(4)]
    requests = [list_blocks(target[0], formatter.lower(talk, tools=[LOOK]).request) for talk in conversations]
    for cache in _caches(target):
        before: list[Block] = []
        for blocks in requests:
            assert cache.send(blocks) >= _last_marker(before) + 1
            before = blocks


@pytest.mark.parametrize("target", TARGETS)
@each_case("added", [1, 19, 20, 21, 38, 39])
def test_a_frame_may_grow_by_lines_up_to_the_bound(target: Target, added: int) -> None:
    lines = [user(f"Line {index}.", name=("Alice", "Bob")[index % 2]) for index in range(5 + 4 * added)]
    grown = [lines[: 5 + added * count] for count in range(5)]
    steps = [[system("S."), *grown[0]], *(now[len(then) :] for then, now in pairwise(grown))]
    _replay(target, MultiAgentHistory(), steps)
    formatter = _formatter(target, MultiAgentHistory())
    assert _last_marker(list_blocks(target[0], formatter.lower([system("S."), *lines]).request)) > 4 * added


@each_case("target", TARGETS)
def test_a_request_after_a_cut_reads_the_prompt_from_the_cache(target: Target) -> None:
    formatter = _formatter(target, ChatHistory())
    talk = [msg for index in range(30) for msg in (user(f"Q{index}."), assistant(f"A{index}."))]
    for cache in _caches(target):
        cache.send(list_blocks(target[0], formatter.lower([system("S."), user("Q.")], tools=[LOOK]).request))
        cut = list_blocks(target[0], formatter.lower([system("S."), *talk[40:], user("Q.")], tools=[LOOK]).request)
        assert cache.send(cut) == 2, "the tool and the system prompt"


@examples(60)
@given(valid_histories(6), _policies)
@each_case("target", TARGETS)
def test_markers_are_only_on_stable_blocks_and_change_nothing_else(
    target: Target, msgs: list[Msg], policy: HistoryPolicy
) -> None:
    stored = dump_messages(msgs)
    plan = _formatter(target, policy).lower(msgs)
    request = plan.request
    plain = _formatter(target, policy, "off").lower(msgs).request
    assert problems(target[0], request) == problems(target[0], plain)
    blocks = list_blocks(target[0], request)
    marked = [block for block in blocks if block.marked]
    assert json.dumps(request).count('"cache_control"') <= 4
    assert _count(request) == len(marked)
    assert not [block for block in marked if "thinking" in block.value.get("type", "")]
    if any(
        synthesis.reason == "user turn added at the end, because the API refuses the request without this turn"
        for synthesis in plan.ledger.syntheses
    ):
        assert CONTINUE_TURN in blocks[-1].text
        assert not blocks[-1].marked
    if isinstance(policy, MultiAgentHistory) and '"role": "user"' in blocks[-1].text:
        assert not (blocks[-1].marked and blocks[-1].value.get("text") == f"\n</{policy.tag}>")
    assert _normalize(target, _remove_markers(request)) == _normalize(target, plain)
    assert dump_messages(msgs) == stored
    assert _formatter(target, policy).lower(msgs).request == request


def _normalize(target: Target, request: dict[str, Any]) -> list[object]:
    """Returns a request where a list with a single text equals a string."""
    fields = {key: value for key, value in request.items() if key not in ("system", "messages", "input")}
    turns = cast("list[dict[str, Any]]", request.get("messages", request.get("input")))
    return [
        fields,
        _normalize_content(target, request.get("system")),
        *(_normalize_turn(target, turn) for turn in turns),
    ]


def _normalize_turn(target: Target, turn: dict[str, Any]) -> dict[str, object]:
    return {
        key: _normalize_content(target, item) if key in ("content", "output") else item
        for key, item in turn.items()
    }


def _normalize_content(target: Target, content: Any) -> object:
    parts = [_text(part) for part in _parts(content)]
    if target[0] == "dashscope-compatible":
        texts = "".join(part for part in parts if isinstance(part, str))
        return texts.replace("\n", ""), [part for part in parts if not isinstance(part, str)]
    return parts


def _text(part: Any) -> object:
    return cast("dict[str, Any]", part).get("text", part) if isinstance(part, dict) else part


# -- requests without markers ----------------------------------------------------------------------------------

_TALK: Final = [
    system("You are Friday."),
    user("Look at the library."),
    assistant("I will.", call("a", place="library"), call("b", place="park")),
    system(result("a", "Open.")),
    system(result("b", "Green.")),
]


@each_case(
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
def test_markers_are_sent_only_to_models_that_accept_them(provider: str, model: str | None, expected: int) -> None:
    formatter = _formatter((provider, model), ChatHistory())
    request = formatter.lower(_TALK).request
    assert problems(provider, request) == []
    assert _count(request) == expected
    if not expected:
        talk = [*_TALK, user("One.", "Two.")]
        expected_request = _formatter((provider, model), ChatHistory(), "off").lower(talk).request
        assert formatter.lower(talk).request == expected_request


@each_case("provider", ["openai", "openai-responses", "dashscope", "dashscope-compatible", "deepseek"])
def test_no_marker_is_sent_by_default(provider: str) -> None:
    assert _count(load_provider(provider).chat_formatter("gpt-6-sol").lower(_TALK).request) == 0


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "dashscope", "dashscope-compatible"])
def test_an_unknown_option_is_refused(provider: str) -> None:
    with pytest.raises(ValueError, match="unknown value 'always'"):
        _formatter((provider, None), ChatHistory(), "always")


@pytest.mark.parametrize("target", EXACT)
def test_no_more_markers_are_sent_than_the_cache_reads(target: Target) -> None:
    lines = [user(f"Line {index}.") for index in range(200)]
    assert _count(_formatter(target, MultiAgentHistory()).lower([system("S."), *lines]).request) == 51


def test_a_marker_of_openai_has_the_mode_explicit() -> None:
    request = _formatter(EXACT[0], ChatHistory()).lower([user("Hi.")]).request
    part = {"type": "text", "text": "Hi.", "prompt_cache_breakpoint": {"mode": "explicit"}}
    assert request == {"messages": [{"role": "user", "name": "Bob", "content": [part]}]}
    request = _formatter(EXACT[1], ChatHistory()).lower([user("Hi.")]).request
    message = {"type": "message", "role": "user", "content": [{**part, "type": "input_text"}]}
    assert request == {"input": [message]}


# -- through the real SDKs ---------------------------------------------------------------------------------------


@each_case("history", {"chat": ChatHistory(), "viewer": MultiAgentHistory(viewer="Friday")})
@pytest.mark.parametrize("target", TARGETS)
def test_the_real_sdk_sends_the_markers(target: Target, history: HistoryPolicy) -> None:
    request = _formatter(target, history).lower(_TALK, tools=[LOOK]).request
    captured = asyncio.run(send(target[0], request))
    assert captured.other_paths == []
    assert captured.body == get_expected_body(target[0], request)
    assert _count(captured.body) == _count(request) > 0
