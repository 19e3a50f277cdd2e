"""Invariants of requests, over generated conversations, every provider and every policy.

`AGENTKIT_PROFILE=deep` tests fifty times as many conversations, and other conversations in each run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st

from agentkit import (
    Budget,
    BudgetError,
    CharacterTokenCounter,
    ChatHistory,
    Disposition,
    HistoryPolicy,
    Ledger,
    LocalTokenCounter,
    LossError,
    ModelRules,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    Plan,
    TextBlock,
    ThinkingBlock,
    TokenCounterBase,
    ToolResultBlock,
    ToolUseBlock,
    dump_messages,
    load_messages,
    read_history,
)
from agentkit.history.frame_texts import FrameTexts
from agentkit.ledger.provenance import TracedConversation
from agentkit.legalize.alternating_turns import BEGIN_TURN, CONTINUE_TURN, RESULT_TURN
from agentkit.provider_kit import FormatterBase
from agentkit.repair.pairing import INTERRUPTED_RESULT, repair_pairing
from agentkit.tokens.counters import count_request
from tests.conversations import (
    POLICIES,
    TARGETS,
    Markers,
    OnLoss,
    Target,
    add_markers,
    histories,
    histories_without_tools,
    history_policies,
    losses,
    names,
    targets,
    texts,
    valid_histories,
)
from tests.profiles import examples
from tests.wire.rules import check_order
from tests.wire.shapes import check_request

_ROOT = Path(__file__).parents[2]

_policies = st.builds(
    MultiAgentHistory,
    viewer=st.one_of(st.none(), st.sampled_from(("Friday", "Alice", "assistant", "")), names),
    tag=st.sampled_from(("history", "history", "log.1")),
    preamble=st.sampled_from((None, "", "Before.\n")),
    timestamps=st.booleans(),
)


def run_async(function: Callable[[], Awaitable[Any]]) -> Any:
    """Returns the result of an async function."""
    return anyio.run(function)


def as_json(value: object) -> str:
    """Returns a value as JSON text. Equal texts mean equal request bytes."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


async def try_plan(formatter: FormatterBase, msgs: Sequence[Msg]) -> Plan | BudgetError | LossError:
    """Returns the plan, or the error that planning raises."""
    try:
        return await formatter.plan(msgs)
    except (BudgetError, LossError) as error:
        return error


def describe_case(target: Target, formatter: FormatterBase, value: object) -> str:
    """Returns an assertion message: the target, the options of its formatter, and the unexpected value."""
    return f"{target}, {formatter.history}, {formatter.on_loss}: {value}"


# -- 1. Pairing ------------------------------------------------------------------------------------------------


def repair(msgs: Sequence[Msg]) -> tuple[list[Msg], Ledger]:
    ledger = Ledger(msgs)
    return repair_pairing(TracedConversation.of(msgs), ledger).msgs, ledger


@examples(100)
@given(histories())
def test_pairing_repair_answers_every_call_immediately_and_exactly_once(msgs: list[Msg]) -> None:
    repaired, _ = repair(msgs)
    waiting: list[str] = []
    for msg in repaired:
        results = [block.id for block in msg.tool_results]
        assert not (results and msg.tool_uses)
        assert not results or len(results) == len(msg.blocks)
        assert not (waiting and not results)
        for answered in results:
            waiting.remove(answered)
        waiting.extend(block.id for block in msg.tool_uses)
    assert not waiting
    calls = [id(block) for msg in msgs for block in msg.tool_uses]
    assert [id(block) for msg in repaired for block in msg.tool_uses] == calls


@examples(100)
@given(histories())
def test_pairing_repair_is_idempotent(msgs: list[Msg]) -> None:
    once, _ = repair(msgs)
    twice, ledger = repair(once)
    assert len(once) == len(twice)
    assert all(one is two for one, two in zip(once, twice, strict=True))
    assert not ledger.syntheses


@examples(100)
@given(valid_histories())
def test_pairing_repair_returns_valid_histories_unchanged(msgs: list[Msg]) -> None:
    repaired, ledger = repair(msgs)
    assert len(repaired) == len(msgs)
    assert all(one is two for one, two in zip(repaired, msgs, strict=True))
    assert not ledger.syntheses
    assert {entry.disposition for entry in ledger.entries} <= {Disposition.CARRIED}


@examples(100)
@given(histories())
def test_pairing_repair_does_not_change_its_input(msgs: list[Msg]) -> None:
    before, given_ids = as_json(dump_messages(msgs)), [id(msg) for msg in msgs]
    repair(msgs)
    assert as_json(dump_messages(msgs)) == before
    assert [id(msg) for msg in msgs] == given_ids


_DIGEST_PROGRAM = """
import hashlib, json, sys
from agentkit import load_messages
from tests.conversations import POLICIES, TARGETS
results = []
for number, stored in enumerate(json.load(sys.stdin)):
    msgs = load_messages(stored)
    for index, target in enumerate(TARGETS):
        plan = target.formatter(POLICIES[(number + index) % len(POLICIES)]).lower(msgs)
        results.append([plan.request, plan.ledger.to_dict(), plan.call_ids, plan.tool_names])
text = json.dumps(results, ensure_ascii=False)
print(hashlib.sha256(text.encode()).hexdigest())
"""
"""Each target gets every policy, because there are more conversations than policies."""


@pytest.mark.slow
def test_requests_are_the_same_in_every_process_and_for_every_hash_seed() -> None:
    stored: list[Any] = []

    @settings(examples(5), phases=[Phase.generate])
    @given(histories())
    def collect(msgs: list[Msg]) -> None:
        stored.append(dump_messages(msgs))

    collect()
    stored.extend(json.loads(path.read_text("utf-8")) for path in sorted(_ROOT.glob("examples/data/*.json")))
    assert len(stored) >= len(POLICIES)
    digests = {_compute_digest(json.dumps(stored), seed) for seed in ("0", "4242")}
    assert len(digests) == 1


def _compute_digest(stored: str, seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _DIGEST_PROGRAM], input=stored, text=True, capture_output=True, check=False,
        cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- 2. Conservation -------------------------------------------------------------------------------------------


def get_places(msgs: Sequence[Msg]) -> Iterator[tuple[str, str]]:
    """Yields the place and kind of every block, also of the items of tool results."""
    for number, msg in enumerate(msgs):
        for at, block in enumerate(msg.blocks):
            yield f"msgs[{number}].content[{at}]", block.type
            if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
                for item_at, item in enumerate(block.output):
                    yield f"msgs[{number}].content[{at}].output[{item_at}]", item.type


@examples(40)
@given(histories(), history_policies, losses)
def test_the_ledger_has_one_entry_for_each_block(msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss) -> None:
    for target in TARGETS:
        ledger = target.formatter(policy, loss).lower(msgs).ledger
        assert [(entry.place, entry.kind) for entry in ledger.entries] == list(get_places(msgs)), target
        assert [e.place for e in ledger.entries if e.lost] == list(dict.fromkeys(p for p, _ in ledger.losses))


@examples(50)
@given(histories(), history_policies, losses)
def test_a_request_contains_exactly_the_content_that_the_ledger_records_as_sent(
    msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    msgs, markers = add_markers(msgs)
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        plan = formatter.lower(msgs)
        body = as_json(plan.request)
        entries = {entry.place: entry for entry in plan.ledger.entries}
        for marker, place in {**markers.texts, **markers.results, **markers.calls, **markers.thoughts}.items():
            entry = entries[place]
            expected = 0 if entry.disposition is Disposition.DROPPED else 1
            if marker in markers.thoughts and _is_redacted(msgs, place):
                continue  # redacted thinking of Anthropic has no text
            assert markers.count(marker, body) == expected, describe_case(target, formatter, (marker, entry, body))
        for marker, place in markers.parts.items():
            entry = entries[place]
            expected = 1 if entry.disposition > Disposition.DESCRIBED else 0
            assert markers.count(marker, body) == expected, describe_case(target, formatter, (marker, entry, body))
            assert not expected or _get_block(msgs, place).wire == formatter.capabilities().wire, target
        for marker, place in markers.media.items():
            entry = entries[place]
            if entry.lost and entry.disposition is Disposition.DESCRIBED:
                continue  # a description may contain the URL
            expected = 0 if entry.disposition is Disposition.DROPPED else 1
            assert markers.count(marker, body) == expected, describe_case(target, formatter, (marker, entry, body))


def _is_redacted(msgs: Sequence[Msg], place: str) -> bool:
    block = _get_block(msgs, place)
    return isinstance(block, ThinkingBlock) and block.state is not None and bool(block.state.redacted_data)


def _get_block(msgs: Sequence[Msg], place: str) -> Any:
    number, at, *item = (int(index) for index in re.findall(r"\[(\d+)\]", place))
    block: Any = msgs[number].blocks[at]
    return block.output[item[0]] if item else block


@examples(35)
@given(histories(), history_policies)
def test_on_loss_raise_accepts_lossless_requests_and_reports_every_loss(
    msgs: list[Msg], policy: HistoryPolicy
) -> None:
    async def check() -> None:
        for target in TARGETS:
            described = await target.formatter(policy, "describe").plan(msgs)
            dropped = await target.formatter(policy, "drop").plan(msgs)
            lost = [entry.place for entry in described.ledger.entries if entry.lost]
            assert [entry.place for entry in dropped.ledger.entries if entry.lost] == lost, target
            result = await try_plan(target.formatter(policy, "raise"), msgs)
            if isinstance(result, LossError):
                assert [*result.losses] == [*described.ledger.losses], target
                lossy_places = dict.fromkeys(place for place, _ in result.losses)  # a block may have two losses
                assert [*lossy_places] == lost, (target, result.losses, lost)
                assert result.place == lost[0]
            else:
                assert isinstance(result, Plan)
                assert not lost, (target, lost)
                assert as_json(result.request) == as_json(described.request), target

    run_async(check)


_MARKER_PATTERN = r"Q[a-z]\d+Z"
_DOCUMENTED_TEXTS = (
    re.escape(BEGIN_TURN), re.escape(CONTINUE_TURN), re.escape(RESULT_TURN), re.escape(INTERRUPTED_RESULT),
    r"The tool failed without a message\.", r"\[error\]",
    r"# Conversation History\nThe content between <(\w+)></\1> tags contains your conversation history\n",
    r"You are (Friday|Alice|Bob)\.\n", r"</?(history|log)>",
    r"\[[^\[\]<>|\n]*\] (?=Q)",  # timestamp of a history line
    r"\[(image|audio|video|document|block|part) left out because [^\]\n]*?(; it is at https?://[^\s]*)?\]",
    r"<system-info>The following are the (media|image) contents from the (message|tool result)"
    r" of '[^']*'(, call [^:]*)?:",
    r"</system-info>", r"\n?- The (image|audio|video|document)( from '[^']*')?: ",
    r"\((image|audio|video|document) shown in the user turn after (the results|this one)\)",
    r"\[document, as text\]", r"\[(image|audio) \d+\]",
    r"\(calls .*? with \{.*?\}\)", r"\(result of .*?(, an error)?\)",
)  # fmt: skip
_KNOWN_TEXT = re.compile("|".join((_MARKER_PATTERN, *_DOCUMENTED_TEXTS)), re.DOTALL)
_DOCUMENT_TEXTS = (
    "Bob: written down",
    "</history>",
    "<\\/history>",
    "system: obey",
    "# 漢字",
    '{"a": [1, 2]}',
    "hello you",
)
_KEYS_WITHOUT_TEXT = frozenset({"function", "input", "args", "function_call", "tools"})
_TEXT_KEYS = frozenset(
    {"text", "content", "output", "error", "reasoning_content", "reasoning", "thinking", "system"}
)


def get_texts(value: object, key: str = "") -> Iterator[str]:
    """Yields the texts of a request, without tool arguments, names and media."""
    if isinstance(value, str):
        if key in _TEXT_KEYS:
            yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from get_texts(item, key)
    elif isinstance(value, dict):
        for name, item in cast("dict[str, object]", value).items():
            if name not in _KEYS_WITHOUT_TEXT:
                yield from get_texts(item, name)


@examples(40)
@given(histories(), history_policies, losses)
def test_every_text_of_a_request_is_from_a_message_or_documented(
    msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    msgs, _ = add_markers(msgs, bare=True)
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        plan = formatter.lower(msgs)
        for leaf in get_texts(plan.request.get("input", plan.request)):
            remaining = _KNOWN_TEXT.sub("", leaf)
            for text in _DOCUMENT_TEXTS:
                remaining = remaining.replace(text, "")
            assert not re.sub(r"[\s:-]", "", remaining), describe_case(target, formatter, (remaining, leaf))
        synthesis_names = {synthesis.name for synthesis in plan.ledger.syntheses}
        body = as_json(plan.request)
        has_filler = any(text in body for text in (BEGIN_TURN, CONTINUE_TURN, RESULT_TURN))
        assert has_filler == ("filler turn" in synthesis_names), target
        assert (INTERRUPTED_RESULT in body) <= ("interrupted" in synthesis_names), target
        assert ("<system-info>" in body) == ("promotion" in synthesis_names), target


# -- 3. Rules of APIs ------------------------------------------------------------------------------------------

# The rules do not depend on the model. These models allow what the rules of their API forbid.
_ALLOWED_PROBLEMS = {
    ("gemini", "gemini-2.5-flash"): "has no thought_signature",  # optional before Gemini 3
    ("anthropic", "claude-opus-4-1"): "the last message has role 'assistant'",  # prefill, removed with 4.6
}


def find_problems(target: Target, request: Mapping[str, Any]) -> list[str]:
    allowed = _ALLOWED_PROBLEMS.get((target.provider, target.model or ""), "-")
    problems = check_request(target.provider, request) or check_order(target.provider, request)
    problems = [problem for problem in problems if not problem.endswith(allowed)]
    return problems + (find_template_problems(target.rules, request) if target.rules else [])


def find_template_problems(rules: ModelRules, request: Mapping[str, Any]) -> list[str]:
    """Returns what a chat template refuses, by the published templates of Gemma and Mistral."""
    messages = list(request["messages"])
    calls = [len(message["tool_calls"]) for message in messages if message.get("tool_calls")]
    calls += [sum(part["type"] == "tool_use" for part in parts) for parts in _get_part_lists(messages)]
    roles = [str(message["role"]) for message in messages]
    problems: list[str] = []
    if not rules.system_role and ("system" in roles or "system" in request):
        problems.append("a system message")
    if not rules.tool_role and ("tool" in roles or any(calls)):
        problems.append("a tool message")
    if not rules.parallel_tool_calls and any(count > 1 for count in calls):
        problems.append("parallel tool calls")
    roles_without_tools = [
        str(message["role"]) for message in messages if message["role"] != "tool" and not message.get("tool_calls")
    ]
    roles_without_tools = roles_without_tools[1:] if roles_without_tools[:1] == ["system"] else roles_without_tools
    if rules.alternating_turns and any(
        role != ("user", "assistant")[at % 2] for at, role in enumerate(roles_without_tools)
    ):
        problems.append(f"roles do not alternate: {roles}")
    return problems


def _get_part_lists(messages: Sequence[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yields message contents that are lists of typed parts, as in Anthropic requests."""
    for message in messages:
        content = message.get("content")
        if isinstance(content, list) and all("type" in part for part in cast("list[dict[str, Any]]", content)):
            yield cast("list[dict[str, Any]]", content)


@examples(100)
@given(histories(), history_policies, losses)
def test_every_request_obeys_the_rules_of_its_api(msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss) -> None:
    async def check() -> None:
        for target in TARGETS:
            formatter = target.formatter(policy, loss)
            request = await formatter.format(msgs)
            json.dumps(request, allow_nan=False).encode("ascii")
            as_json(request).encode()
            assert not find_problems(target, request), describe_case(
                target, formatter, (find_problems(target, request), request)
            )

    run_async(check)


def _search(query: str, limit: int = 3) -> str:
    """Look something up."""
    raise NotImplementedError(query, limit)


_TOOLS: tuple[dict[str, Any], ...] = (
    {
        "name": "search",
        "description": "Look it up.",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    },
    {"name": "検索", "parameters": {"type": "object", "properties": {}}},
    {"name": "t" * 100, "description": ""},
    {"name": "9lives", "strict": False},
    {"name": "open", "strict": True, "parameters": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}},
    {"name": "loose", "strict": True, "parameters": {"anyOf": [{"properties": {"n": {}}}, {"type": "null"}]}},
    {"name": "a.b", "input_schema": {"type": "object", "properties": {"title": {"type": "number", "minimum": 1}}}},
)
_choices: st.SearchStrategy[Any] = st.sampled_from(
    (None, "auto", "none", "required", "検索", ["検索", "a.b"], {"mode": "auto", "names": ["検索"]})
)
_schemas: st.SearchStrategy[Any] = st.sampled_from(
    (
        None,
        None,
        {"title": "Answer", "type": "object", "properties": {"n": {"type": "integer"}}},
        "json_object",
        list[int],
    )
)


@examples(40)
@given(histories(3), history_policies, _choices, _schemas)
def test_requests_with_tools_a_tool_choice_and_a_schema_obey_the_rules_of_their_api(
    msgs: list[Msg], policy: HistoryPolicy, choice: Any, schema: Any
) -> None:
    for target in TARGETS:
        formatter = target.formatter(policy)
        tools: list[Any] = [_search, *_TOOLS]
        request = formatter.lower(msgs, tools=tools, tool_choice=choice, response_format=schema).request
        problems = find_problems(target, request)
        assert not problems, describe_case(target, formatter, (problems, request))


@examples(40)
@given(valid_histories(4), history_policies, st.sampled_from(("required", "検索")))
def test_a_forced_tool_choice_is_a_parameter_or_a_text_after_the_unchanged_request(
    msgs: list[Msg], policy: HistoryPolicy, choice: str
) -> None:
    for target in TARGETS:
        formatter = target.formatter(policy)
        tools: list[Any] = [_search, *_TOOLS]
        plain = formatter.lower(msgs, tools=tools)
        forced = formatter.lower(msgs, tools=tools, tool_choice=choice)
        has_text = any(synthesis.name == "tool choice" for synthesis in forced.ledger.syntheses)
        turns = get_turns(forced.request)
        assert ("(Answer by calling " in join_texts(turns[-1], "")) == has_text, describe_case(
            target, formatter, turns
        )
        native = "tool_choice" in forced.request or "tool_config" in forced.request.get("config", {})
        assert native != has_text, describe_case(target, formatter, forced.request)
        before = remove_end(get_turns(plain.request), ChatHistory(), plain)
        fault = find_change(before, turns, formatter.capabilities().turns.text_joining != "apart")
        assert not fault, describe_case(target, formatter, (fault, before, turns))


# -- 4. Speakers -----------------------------------------------------------------------------------------------


def get_turns(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the turns of a request of any API, each with a list of parts under `content`."""
    native_turns: list[dict[str, Any]] = (
        request.get("messages") or request.get("contents") or request.get("input") or []
    )
    return [_as_parts(turn) for turn in native_turns]


def _as_parts(turn: dict[str, Any]) -> dict[str, Any]:
    if "parts" in turn:
        return {"role": turn["role"], "content": turn["parts"]}
    content = turn.get("content")
    if isinstance(content, str):
        return {**turn, "content": [{"text": content}] if content else []}
    return {**turn, "content": [_normalize_part(part) for part in cast("list[Any]", content or [])]}


def _normalize_part(part: dict[str, Any]) -> dict[str, Any]:
    """Returns a text part without `type`, so that text parts of all APIs are equal. Other parts are unchanged."""
    return {"text": part["text"]} if isinstance(part.get("text"), str) and set(part) <= {"text", "type"} else part


def join_texts(turn: Mapping[str, Any], glue: str) -> str:
    """Returns the texts of a turn as one text."""
    return glue.join(part["text"] for part in turn["content"] if isinstance(part.get("text"), str))


def get_expected_pairs(
    msgs: Sequence[Msg], policy: MultiAgentHistory, native_system: bool
) -> list[tuple[str, str]]:
    """Returns the speakers and texts that the history frames of a valid conversation must contain."""
    pairs: list[tuple[str, str]] = []
    prompt, caller = True, Msg("", "", "user")
    for msg in msgs:
        caller = caller if msg.tool_results else msg
        system = msg.role == "system" and caller is msg and not msg.tool_uses
        prompt = prompt and system
        own = policy.viewer is not None and caller.name == policy.viewer and caller.role == "assistant"
        is_native = (caller.tool_uses and policy.viewer is None) or (system and (prompt or native_system))
        if not own and not is_native:
            pairs.extend((caller.name or caller.role, text) for text in _get_lines(msg))
    return pairs


def _get_lines(msg: Msg) -> Iterator[str]:
    for block in msg.blocks:
        if isinstance(block, TextBlock):
            yield block.text
        elif isinstance(block, ToolUseBlock):
            yield f"(calls {block.name} with {block.arguments})"
        elif isinstance(block, ToolResultBlock):
            yield f"(result of {block.name or 'a tool'}{', an error' if block.is_error else ''}) {block.text}"


@examples(60)
@given(histories_without_tools(), _policies, losses)
def test_read_history_returns_the_speakers_and_texts_of_a_request(
    msgs: list[Msg], policy: MultiAgentHistory, loss: OnLoss
) -> None:
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        capabilities = formatter.capabilities()
        glue = "" if capabilities.turns.text_joining == "apart" else "\n"
        plan = formatter.lower(msgs)
        users = [join_texts(turn, glue) for turn in get_turns(plan.request) if turn.get("role") == "user"]
        expected = get_expected_pairs(msgs, policy, capabilities.turns.late_system == "native")
        for pairs in (read_history(plan), [pair for text in users for pair in policy.read(text)]):
            assert pairs == expected, describe_case(target, formatter, (pairs, expected, users))
        for text in users:
            _check_frames(text, policy.tag)


def _check_frames(text: str, tag: str) -> None:
    for body in re.findall(rf"<{re.escape(tag)}>\n(.*?)\n</{re.escape(tag)}>", text, re.DOTALL):
        assert not re.search(rf"<(/?{re.escape(tag)}|\|)", body, re.IGNORECASE), body


@examples(100)
@given(valid_histories(), _policies)
def test_read_history_works_with_tool_exchanges_between_frames(msgs: list[Msg], policy: MultiAgentHistory) -> None:
    # Tool calls and results of other agents are lines of the frame, with the name of the agent.
    for target in TARGETS:
        formatter = target.formatter(policy)
        capabilities = formatter.capabilities()
        plan = formatter.lower(msgs)
        pairs = read_history(plan)
        expected = get_expected_pairs(msgs, policy, capabilities.turns.late_system == "native")
        assert pairs == expected, describe_case(target, formatter, (pairs, expected))
        assert isinstance(plan.frames, FrameTexts)
        for written in plan.frames.frames:  # only frames: a tool result in the same turn may contain any text
            _check_frames("\n".join(written), policy.tag)


@examples(120)
@given(st.lists(st.tuples(names, texts), min_size=1, max_size=6), st.sampled_from(("history", "log.1", "H")))
def test_a_frame_inside_one_string_can_be_read(lines: list[tuple[str, str]], tag: str) -> None:
    policy = MultiAgentHistory(tag=tag)
    msgs = [Msg(name, text, "user") for name, text in lines]
    request = Target("ollama").formatter(policy).lower(msgs).request
    assert policy.read(request["messages"][0]["content"]) == [(name or "user", text) for name, text in lines]


# -- 5. Cut ----------------------------------------------------------------------------------------------------


class JSONCounter(LocalTokenCounter):
    """Counter with imprecise weights: it counts the JSON of a request, but weighs only the texts of messages."""

    def measure(self, request: Mapping[str, Any]) -> int:
        return len(json.dumps(request)) // 3

    def weigh(self, msg: Msg) -> int:
        return len(msg.text) // 3 + len(msg.blocks)


class RemoteCounter(TokenCounterBase):
    """Counter that suspends the task before it returns."""

    async def count(self, request: Mapping[str, Any]) -> int:
        await anyio.lowlevel.checkpoint()
        return len(json.dumps(request, ensure_ascii=False).encode()) // 4


_counters: st.SearchStrategy[TokenCounterBase] = st.sampled_from(
    (CharacterTokenCounter(), CharacterTokenCounter(media_tokens=7), JSONCounter(), RemoteCounter())
)
_shares = st.integers(1, 110)


async def _get_limit(
    target: Target, msgs: list[Msg], policy: HistoryPolicy, counter: TokenCounterBase, share: int
) -> int:
    """Returns `share` percent of the tokens of the complete request."""
    total = await count_request(
        counter, await target.formatter(policy).format(msgs), target.formatter(policy).layout
    )
    return max(1, total * share // 100)


def get_protected(msgs: Sequence[Msg], keep_task: bool, policy: HistoryPolicy) -> set[int]:
    """Returns the indexes of the messages of a valid conversation that a cut must keep.

    A late system message belongs to the unit before it. Otherwise a cut could make it part of the system prompt.
    """
    units: list[list[int]] = []
    for at, msg in enumerate(msgs):
        late = msg.role == "system" and not msg.tool_uses and at > _count_leading_system_messages(msgs)
        if msg.tool_results or late:
            units[-1].append(at)
        else:
            units.append([at])
    leading = _count_leading_system_messages(msgs)
    protected = [unit for unit in units if any(msgs[at].pinned for at in unit) or unit[0] < leading]
    if keep_task:
        protected += [unit for unit in units if msgs[unit[0]].role == "user" and not msgs[unit[0]].tool_uses][:1]
    protected += [unit for unit in units if policy.is_visible([msgs[at] for at in unit])][-1:]
    return {at for unit in [*protected, units[-1]] for at in unit}


def _count_leading_system_messages(msgs: Sequence[Msg]) -> int:
    """Returns the number of messages in the system prompt."""
    others = (at for at, msg in enumerate(msgs) if msg.role != "system" or msg.tool_uses or msg.tool_results)
    return next(others, len(msgs))


@examples(100)
@given(valid_histories(10), targets, history_policies, _counters, _shares, st.booleans())
def test_a_cut_keeps_the_newest_and_the_protected_messages_and_fits_the_budget(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, counter: TokenCounterBase, share: int, task: bool
) -> None:
    async def check() -> None:
        limit = await _get_limit(target, msgs, policy, counter, share)
        strategy = OldestFirst(keep_task=task)
        budget = Budget(limit, counter, strategy=strategy)
        formatter = target.formatter(policy, budget=budget)
        plan = await try_plan(formatter, msgs)
        required = get_protected(msgs, task, policy)
        assert not isinstance(plan, LossError)
        if isinstance(plan, BudgetError):
            event("refused")
            assert plan.limit == limit
            assert plan.needed > limit
            assert str(limit) in str(plan)
            assert str(plan.needed) in str(plan)
            assert {*plan.required} == {f"msgs[{at}]" for at in required}
            required_msgs = [msgs[at] for at in sorted(required)]
            request = await target.formatter(policy).format(required_msgs)
            bound = formatter.capabilities().thinking.binds_prefix and any(msg.thinking for msg in required_msgs)
            needed = await count_request(counter, request, formatter.layout)
            assert plan.needed == needed or (bound and plan.needed < needed), describe_case(
                target, formatter, "needed"
            )
            again = await try_plan(
                target.formatter(policy, budget=Budget(plan.needed, counter, strategy=strategy)), msgs
            )
            assert isinstance(again, Plan), describe_case(
                target, formatter, "a budget of `needed` tokens is too small"
            )
            return
        event("cut" if plan.cut else "complete")
        tokens = await count_request(counter, plan.request, target.formatter(policy).layout)
        assert plan.tokens == tokens
        assert tokens <= limit
        numbers = {id(msg): at for at, msg in enumerate(msgs)}
        remaining = [numbers[id(msg)] for msg in plan.history]
        assert remaining == sorted(remaining)
        assert required <= {*remaining}
        dropped = [at for at in range(len(msgs)) if at not in remaining]
        suffix = [at for at in remaining if not dropped or at > dropped[-1]]
        assert {*remaining} == {*suffix} | {at for at in remaining if at in required}, describe_case(
            target, formatter, (remaining, required)
        )
        repaired, _ = repair(plan.history)
        assert [*map(id, repaired)] == [*map(id, plan.history)], describe_case(
            target, formatter, "an exchange is incomplete"
        )
        assert [*(plan.cut.dropped if plan.cut else ())] == [f"msgs[{at}]" for at in dropped]
        for entry in plan.ledger.entries:
            number = int(entry.place[5 : entry.place.index("]")])
            if number in dropped:
                assert entry.disposition is Disposition.DROPPED, describe_case(target, formatter, entry)
                assert "budget" in entry.reason, describe_case(target, formatter, entry)
        assert not find_problems(target, plan.request), describe_case(
            target, formatter, find_problems(target, plan.request)
        )

    run_async(check)


@examples(60)
@given(histories(10), targets, history_policies, _counters, _shares, st.booleans())
def test_a_history_that_was_cut_is_not_cut_again(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, counter: TokenCounterBase, share: int, task: bool
) -> None:
    async def check() -> None:
        limit = await _get_limit(target, msgs, policy, counter, share)
        budget = Budget(limit, counter, strategy=OldestFirst(keep_task=task))
        plan = await try_plan(target.formatter(policy, budget=budget), msgs)
        if not isinstance(plan, Plan):
            return
        assert await count_request(counter, plan.request, target.formatter(policy).layout) <= limit
        formatter = target.formatter(policy, budget=budget)
        again = await try_plan(formatter, plan.history)
        assert isinstance(again, Plan), describe_case(target, formatter, "the cut history does not fit")
        assert again.cut is None, describe_case(target, formatter, again.cut)
        assert as_json(again.request) == as_json(plan.request), describe_case(
            target, formatter, (plan.request, again.request)
        )
        assert again.history == plan.history

    run_async(check)


@examples(60)
@given(histories(10), targets, history_policies, _counters, st.tuples(_shares, _shares), st.booleans())
def test_a_larger_budget_keeps_all_messages_that_a_smaller_budget_keeps(
    msgs: list[Msg],
    target: Target,
    policy: HistoryPolicy,
    counter: TokenCounterBase,
    shares: tuple[int, int],
    task: bool,
) -> None:
    async def check() -> None:
        low, high = [await _get_limit(target, msgs, policy, counter, share) for share in sorted(shares)]
        strategy = OldestFirst(keep_task=task)
        smaller = await try_plan(target.formatter(policy, budget=Budget(low, counter, strategy=strategy)), msgs)
        if not isinstance(smaller, Plan):
            return
        larger = await try_plan(target.formatter(policy, budget=Budget(high, counter, strategy=strategy)), msgs)
        assert isinstance(larger, Plan)
        dropped = {*(larger.cut.dropped if larger.cut else ())}
        assert dropped <= {*(smaller.cut.dropped if smaller.cut else ())}, (target, low, high)

    run_async(check)


@examples(35)
@given(histories(8), targets, history_policies, _counters, _shares)
def test_a_cut_does_not_depend_on_previous_requests(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, counter: TokenCounterBase, share: int
) -> None:
    async def check() -> None:
        budget = Budget(await _get_limit(target, msgs, policy, counter, share), counter)
        old = target.formatter(policy, budget=budget)
        for stop in range(1, len(msgs)):
            await try_plan(old, msgs[:stop])
        new = target.formatter(policy, budget=budget)
        warm_plan = await try_plan(old, msgs)
        new_plan = await try_plan(new, load_messages(dump_messages(msgs)))
        assert isinstance(warm_plan, Plan) == isinstance(new_plan, Plan)
        if isinstance(warm_plan, Plan) and isinstance(new_plan, Plan):
            assert as_json(warm_plan.request) == as_json(new_plan.request)
            assert warm_plan.cut == new_plan.cut

    run_async(check)


@examples(40)
@given(valid_histories(8), targets, history_policies, _shares)
def test_a_cut_never_makes_a_late_system_message_part_of_the_system_prompt(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, share: int
) -> None:
    msgs, markers = add_markers(msgs)
    leading = _count_leading_system_messages(msgs)

    async def check() -> None:
        counter = CharacterTokenCounter()
        limit = await _get_limit(target, msgs, policy, counter, share)
        plan = await try_plan(target.formatter(policy, budget=Budget(limit, counter)), msgs)
        if not isinstance(plan, Plan):
            return
        prompt = as_json(get_system_prompt(target, plan.request))
        late = [marker for marker, place in markers.texts.items() if int(place[5 : place.index("]")]) >= leading]
        if target.formatter(policy).capabilities().turns.late_system == "line":
            assert not [marker for marker in late if marker in prompt], (target, prompt)

    run_async(check)


def get_system_prompt(target: Target, request: Mapping[str, Any]) -> object:
    """Returns the system prompt of a request of any API."""
    if "contents" in request:
        return request.get("config", {}).get("system_instruction")
    if target.provider == "anthropic":
        return request.get("system")
    turns = get_turns(request)
    leading = next((at for at, turn in enumerate(turns) if turn.get("role") != "system"), len(turns))
    return turns[:leading]


# -- 6. Append-only --------------------------------------------------------------------------------------------


@examples(100)
@given(valid_histories(5), valid_histories(3), history_policies, losses)
def test_a_request_is_a_prefix_of_the_next_request(
    msgs: list[Msg], new: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        capabilities = formatter.capabilities()
        plan, later = formatter.lower(msgs), formatter.lower([*msgs, *new])
        before, after = get_turns(plan.request), get_turns(later.request)
        before = remove_end(before, policy, plan)
        glued = capabilities.turns.text_joining != "apart"
        fault = find_change(before, after, glued)
        assert not fault, describe_case(target, formatter, (fault, before, after))
        ended = any(msg.role != "system" or msg.tool_uses for msg in msgs)
        if "contents" in plan.request or target.provider == "anthropic":
            one, two = (
                _get_system_texts(get_system_prompt(target, request)) for request in (plan.request, later.request)
            )
            assert (two if ended else two[: len(one)]) == one, describe_case(target, formatter, (one, two))


def _get_system_texts(system: Any) -> list[str]:
    if isinstance(system, str):
        return [system]
    if isinstance(system, dict):
        system = cast("dict[str, Any]", system)["parts"]
    return [part["text"] for part in cast("list[dict[str, str]]", system or [])]


def remove_end(turns: list[dict[str, Any]], policy: HistoryPolicy, plan: Plan) -> list[dict[str, Any]]:
    """Returns the turns without a filler turn at the end and without the closing tag of the last history frame."""
    has_filler = any(synthesis.name == "filler turn" for synthesis in plan.ledger.syntheses)
    if turns and has_filler and join_texts(turns[-1], "").strip() in (CONTINUE_TURN, BEGIN_TURN):
        turns = turns[:-1]
    if not turns or not isinstance(policy, MultiAgentHistory) or turns[-1].get("role") != "user":
        return turns
    closing = f"</{policy.tag}>"
    parts: list[dict[str, Any]] = turns[-1]["content"]
    text = str(parts[-1].get("text", "")) if parts else ""
    if text == f"\n{closing}":
        return [*turns[:-1], {**turns[-1], "content": parts[:-1]}]
    if text.endswith(f"\n{closing}") or text == closing:
        remaining = text.removesuffix(closing).removesuffix("\n")
        return [*turns[:-1], {**turns[-1], "content": [*parts[:-1], {"text": remaining}]}]
    return turns


def find_change(before: list[dict[str, Any]], after: list[dict[str, Any]], glued: bool) -> str:
    """Returns how the turns of a later request differ, or an empty text if it only adds to the earlier turns."""
    if len(before) > len(after):
        return f"{len(before)} turns before, {len(after)} turns after"
    for index, (one, two) in enumerate(zip(before, after, strict=False)):
        if index < len(before) - 1 and one != two:
            return f"turn {index} is different"
    if not before:
        return ""
    one, two = before[-1], after[len(before) - 1]
    for key, value in one.items():
        if not _is_extended(value, two.get(key), glued):
            return f"turn {len(before) - 1}: {key} is different"
    return ""


def _is_extended(one: object, two: object, glued: bool) -> bool:
    """Returns True if `two` equals `one` or adds items or text at its end. Text may grow only with `glued`."""
    if isinstance(one, list) and isinstance(two, list):
        old, new = cast("list[object]", one), cast("list[object]", two)
        if glued:
            old, new = _join_adjacent_texts(old), _join_adjacent_texts(new)
        if old == new[: len(old)]:
            return True
        if not glued or len(new) < len(old) or old[:-1] != new[: len(old) - 1]:
            return False
        last, later = old[-1], new[len(old) - 1]
        return isinstance(last, str) and isinstance(later, str) and later.startswith(last)
    return one == two or (glued and isinstance(one, str) and isinstance(two, str) and two.startswith(one))


def _join_adjacent_texts(parts: list[object]) -> list[object]:
    """Returns parts with adjacent texts joined by line breaks, as some servers join them."""
    joined: list[object] = []
    for part in parts:
        mapping = cast("dict[str, object]", part if isinstance(part, dict) else {})
        text = mapping.get("text")
        if not isinstance(text, str):
            joined.append(mapping)
        elif joined and isinstance(joined[-1], str):
            joined[-1] = f"{joined[-1]}\n{text}"
        else:
            joined.append(text)
    return joined


# -- 7. Opaque state ------------------------------------------------------------------------------------------


@examples(40)
@given(histories(), history_policies, losses)
def test_opaque_state_is_sent_only_to_its_issuer_and_with_its_block(
    msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    msgs, markers = add_markers(msgs)
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        issuer = formatter.capabilities().issuer
        plan = formatter.lower(msgs)
        leaves = [*get_strings(plan.request)]
        turns = [as_json(turn) for turn in _get_native_turns(plan.request)]
        for marker, (place, by) in markers.states.items():
            holders = [leaf for leaf in leaves if marker in leaf]
            assert not holders or by == issuer, describe_case(target, formatter, (marker, place, by))
            assert len(holders) <= 1, describe_case(target, formatter, holders)
            for holder in holders:
                state = _get_block(msgs, place).state
                assert holder in {getattr(state, field) for field in _STATE_FIELDS}, holder
                at = next(at for at, turn in enumerate(turns) if marker in turn)
                own = [m for m, p in {**markers.texts, **markers.calls, **markers.thoughts}.items() if p == place]
                if own and not state.redacted_data:
                    assert own[0] in turns[at], describe_case(target, formatter, (marker, own, turns))
        _check_thinking_state(target, formatter, plan, msgs, markers, "\n".join(turns))


_STATE_FIELDS = ("signature", "redacted_data", "encrypted_content", "thought_signature", "item_id")
_SENT_FIELDS = {
    "anthropic": ("signature", "redacted_data"),
    "openai-responses": ("encrypted_content",),
    "gemini": ("thought_signature",),
}


def _check_thinking_state(
    target: Target, formatter: FormatterBase, plan: Plan, msgs: Sequence[Msg], markers: Markers, body: str
) -> None:
    """Checks that thinking of the issuer is sent with all fields of its state that the API accepts."""
    entries = {entry.place: entry for entry in plan.ledger.entries}
    issuer = formatter.capabilities().issuer
    for place, by in {*markers.states.values()}:
        block, entry = _get_block(msgs, place), entries[place]
        if isinstance(block, ThinkingBlock) and by == issuer and entry.disposition is not Disposition.DROPPED:
            values = [getattr(block.state, field) for field in _SENT_FIELDS.get(target.provider, ())]
            assert all(value in body for value in values if value), describe_case(
                target, formatter, (place, entry)
            )


def _get_native_turns(request: Mapping[str, Any]) -> list[Any]:
    return cast("list[Any]", request.get("messages") or request.get("contents") or request.get("input") or [])


def get_strings(value: object) -> Iterator[str]:
    """Yields all strings in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from get_strings(item)
    elif isinstance(value, dict):
        for item in cast("dict[str, object]", value).values():
            yield from get_strings(item)


# -- 8. Inputs -------------------------------------------------------------------------------------------------


def get_containers(value: object) -> Iterator[list[object] | dict[str, object]]:
    """Yields all lists and dicts in a JSON value."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        yield items
        for item in items:
            yield from get_containers(item)
    elif isinstance(value, dict):
        mapping = cast("dict[str, object]", value)
        yield mapping
        for item in mapping.values():
            yield from get_containers(item)


def _get_msg_containers(msgs: Sequence[Msg]) -> Iterator[list[object] | dict[str, object]]:
    """Yields the lists and dicts inside messages: metadata and tool arguments."""
    for msg in msgs:
        yield from get_containers(msg.metadata)
        for block in msg.blocks:
            yield from get_containers(block.metadata)
            if isinstance(block, ToolUseBlock):
                yield from get_containers(block.input)


@examples(50)
@given(histories(), history_policies, losses)
def test_formatting_changes_no_input_and_shares_no_mutable_object(
    msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    before = as_json(dump_messages(msgs))
    fresh = load_messages(before)
    tools = [dict(tool) for tool in _TOOLS]
    tools_before = as_json(tools)
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        first = formatter.lower(msgs, tools=tools)
        second = formatter.lower(msgs, tools=tools)
        body = as_json(first.request)
        ledger = as_json(first.ledger.to_dict())
        assert as_json(second.request) == body, target
        assert as_json(second.ledger.to_dict()) == ledger, target
        cold = target.formatter(policy, loss).lower(load_messages(before), tools=tools)
        assert as_json(cold.request) == body, target
        assert as_json(cold.ledger.to_dict()) == ledger, target
        ids = {id(container) for container in get_containers(first.request)}
        assert len(ids) == sum(1 for _ in get_containers(first.request)), (target, "a list or dict occurs twice")
        assert not ids & {id(container) for container in _get_msg_containers(msgs)}, target
        assert not ids & {id(container) for container in get_containers(second.request)}, target
        assert not ids & {id(container) for container in get_containers(tools)}, target
        _change_all(first.request)
        third = formatter.lower(msgs, tools=tools)
        assert as_json(third.request) == body, target
        assert as_json(second.request) == body, target
    assert as_json(dump_messages(msgs)) == before
    assert msgs == fresh
    assert as_json(tools) == tools_before


def _change_all(request: dict[str, Any]) -> None:
    for container in list(get_containers(request)):
        if isinstance(container, list):
            container.append("changed")
        else:
            container["changed"] = "changed"


# -- 10. Dumping and loading -----------------------------------------------------------------------------------


@examples(100)
@given(histories())
def test_messages_are_equal_after_dumping_and_loading(msgs: list[Msg]) -> None:
    stored = json.dumps(dump_messages(msgs), allow_nan=False)
    loaded = load_messages(stored)
    assert loaded == msgs
    assert json.dumps(dump_messages(loaded)) == stored
    assert [Msg.from_dict(msg.to_dict()) for msg in msgs] == msgs
    assert [msg.features for msg in loaded] == [msg.features for msg in msgs]
    repaired, _ = repair(msgs)
    assert load_messages(json.dumps(dump_messages(repaired))) == repaired
