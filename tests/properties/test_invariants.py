"""Invariants of requests, over generated conversations, every provider and every policy.

`AGENTKIT_PROFILE=deep` runs each property over fifty times as many conversations, in another order each time.
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
from agentkit.legalize.turns import BEGIN_TURN, CONTINUE_TURN, RESULT_TURN
from agentkit.provider_kit import FormatterBase
from agentkit.repair.pairing import INTERRUPTED_RESULT, repair_pairing
from agentkit.tokens.counters import count_request
from tests.conversations import (
    TARGETS,
    Marks,
    OnLoss,
    Target,
    histories,
    history_policies,
    losses,
    marked,
    names,
    spoken_histories,
    targets,
    texts,
    valid_histories,
)
from tests.profiles import examples
from tests.wire.rules import check_order
from tests.wire.walker import check_request

_ROOT = Path(__file__).parents[2]

_framings = st.builds(
    MultiAgentHistory,
    viewer=st.one_of(st.none(), st.sampled_from(("Friday", "Alice", "assistant", "")), names),
    tag=st.sampled_from(("history", "history", "log.1")),
    preamble=st.sampled_from((None, "", "Before.\n")),
    timestamps=st.booleans(),
)


def waited(function: Callable[[], Awaitable[Any]]) -> Any:
    """What an asynchronous function gives."""
    return anyio.run(function)


def as_json(value: object) -> str:
    """A value as JSON text: equal texts, equal bytes."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


async def planned(formatter: FormatterBase, msgs: Sequence[Msg]) -> Plan | BudgetError | LossError:
    """The plan, or why there is none."""
    try:
        return await formatter.plan(msgs)
    except (BudgetError, LossError) as error:
        return error


def case(target: Target, formatter: FormatterBase, found: object) -> str:
    """What an assertion says: who, how, and what was found."""
    return f"{target}, {formatter.history}, {formatter.on_loss}: {found}"


# -- 1. Pairing ------------------------------------------------------------------------------------------------


def repaired(msgs: Sequence[Msg]) -> tuple[list[Msg], Ledger]:
    ledger = Ledger(msgs)
    return repair_pairing(TracedConversation.of(msgs), ledger).msgs, ledger


@examples(100)
@given(histories())
def test_pairing_repair_answers_every_call_immediately_and_exactly_once(msgs: list[Msg]) -> None:
    whole, _ = repaired(msgs)
    waiting: list[str] = []
    for msg in whole:
        results = [block.id for block in msg.tool_results]
        assert not (results and msg.tool_uses)
        assert not results or len(results) == len(msg.blocks)
        assert not (waiting and not results)
        for answered in results:
            waiting.remove(answered)
        waiting.extend(block.id for block in msg.tool_uses)
    assert not waiting
    calls = [id(block) for msg in msgs for block in msg.tool_uses]
    assert [id(block) for msg in whole for block in msg.tool_uses] == calls


@examples(100)
@given(histories())
def test_pairing_repair_is_idempotent(msgs: list[Msg]) -> None:
    once, _ = repaired(msgs)
    twice, ledger = repaired(once)
    assert len(once) == len(twice)
    assert all(one is two for one, two in zip(once, twice, strict=True))
    assert not ledger.syntheses


@examples(100)
@given(valid_histories())
def test_pairing_repair_is_the_identity_on_valid_histories(msgs: list[Msg]) -> None:
    whole, ledger = repaired(msgs)
    assert len(whole) == len(msgs)
    assert all(one is two for one, two in zip(whole, msgs, strict=True))
    assert not ledger.syntheses
    assert {entry.disposition for entry in ledger.entries} <= {Disposition.CARRIED}


@examples(100)
@given(histories())
def test_pairing_repair_does_not_change_its_input(msgs: list[Msg]) -> None:
    before, given_ids = as_json(dump_messages(msgs)), [id(msg) for msg in msgs]
    repaired(msgs)
    assert as_json(dump_messages(msgs)) == before
    assert [id(msg) for msg in msgs] == given_ids


_DIGEST = """
import hashlib, json, sys
from agentkit import load_messages
from tests.conversations import POLICIES, TARGETS
from agentkit.tokens.counters import count_request
said = []
for stored in json.load(sys.stdin):
    for target in TARGETS:
        for policy in POLICIES:
            plan = target.formatter(policy).lower(load_messages(stored))
            said.append([plan.request, plan.ledger.to_dict(), plan.call_ids, plan.tool_names])
text = json.dumps(said, ensure_ascii=False)
print(hashlib.sha256(text.encode()).hexdigest())
"""


@pytest.mark.slow
def test_pairing_and_purity_hold_across_processes_and_hash_seeds() -> None:
    stored: list[Any] = []

    @settings(examples(5), phases=[Phase.generate])
    @given(histories())
    def collect(msgs: list[Msg]) -> None:
        stored.append(dump_messages(msgs))

    collect()
    stored.extend(json.loads(path.read_text("utf-8")) for path in sorted(_ROOT.glob("examples/data/*.json")))
    digests = {_digest(json.dumps(stored), seed) for seed in ("0", "4242")}
    assert len(digests) == 1


def _digest(stored: str, seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _DIGEST], input=stored, text=True, capture_output=True, check=False, cwd=_ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# -- 2. Conservation -------------------------------------------------------------------------------------------


def places(msgs: Sequence[Msg]) -> Iterator[tuple[str, str]]:
    """Place and kind of every block, items of results included."""
    for number, msg in enumerate(msgs):
        for at, block in enumerate(msg.blocks):
            yield f"msgs[{number}].content[{at}]", block.type
            if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
                for item_at, item in enumerate(block.output):
                    yield f"msgs[{number}].content[{at}].output[{item_at}]", item.type


@examples(40)
@given(histories(), history_policies, losses)
def test_conservation_the_ledger_has_one_entry_for_each_block(
    msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    for target in TARGETS:
        ledger = target.formatter(policy, loss).lower(msgs).ledger
        assert [(entry.place, entry.kind) for entry in ledger.entries] == list(places(msgs)), target
        assert [e.place for e in ledger.entries if e.lost] == list(dict.fromkeys(p for p, _ in ledger.losses))


@examples(50)
@given(histories(), history_policies, losses)
def test_conservation_what_the_ledger_says_is_sent_is_sent(
    msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    msgs, marks = marked(msgs)
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        plan = formatter.lower(msgs)
        body = as_json(plan.request)
        entries = {entry.place: entry for entry in plan.ledger.entries}
        for marker, place in {**marks.texts, **marks.results, **marks.calls, **marks.thoughts}.items():
            entry = entries[place]
            expected = 0 if entry.disposition is Disposition.DROPPED else 1
            if marker in marks.thoughts and _is_redacted(msgs, place):
                continue  # Anthropic's redacted thinking has no text
            assert marks.times(marker, body) == expected, case(target, formatter, (marker, entry, body))
        for marker, place in marks.parts.items():
            entry = entries[place]
            expected = 1 if entry.disposition > Disposition.DESCRIBED else 0
            assert marks.times(marker, body) == expected, case(target, formatter, (marker, entry, body))
            assert not expected or _block_at(msgs, place).wire == formatter.capabilities().wire, target
        for marker, place in marks.media.items():
            entry = entries[place]
            if entry.lost and entry.disposition is Disposition.DESCRIBED:
                continue  # a description may tell the URL
            expected = 0 if entry.disposition is Disposition.DROPPED else 1
            assert marks.times(marker, body) == expected, case(target, formatter, (marker, entry, body))


def _is_redacted(msgs: Sequence[Msg], place: str) -> bool:
    block = _block_at(msgs, place)
    return isinstance(block, ThinkingBlock) and block.state is not None and bool(block.state.redacted_data)


def _block_at(msgs: Sequence[Msg], place: str) -> Any:
    number, at, *item = (int(found) for found in re.findall(r"\[(\d+)\]", place))
    block: Any = msgs[number].blocks[at]
    return block.output[item[0]] if item else block


@examples(35)
@given(histories(), history_policies)
def test_conservation_raise_accepts_lossless_requests_and_names_each_loss(
    msgs: list[Msg], policy: HistoryPolicy
) -> None:
    async def check() -> None:
        for target in TARGETS:
            described = await target.formatter(policy, "describe").plan(msgs)
            dropped = await target.formatter(policy, "drop").plan(msgs)
            lost = [entry.place for entry in described.ledger.entries if entry.lost]
            assert [entry.place for entry in dropped.ledger.entries if entry.lost] == lost, target
            found = await planned(target.formatter(policy, "raise"), msgs)
            if isinstance(found, LossError):
                assert [*found.losses] == [*described.ledger.losses], target
                places = dict.fromkeys(place for place, _ in found.losses)  # a block may lose two things
                assert [*places] == lost, (target, found.losses, lost)
                assert found.place == lost[0]
            else:
                assert isinstance(found, Plan)
                assert not lost, (target, lost)
                assert as_json(found.request) == as_json(described.request), target

    waited(check)


_MARKER = r"Q[a-z]\d+Z"
_DOCUMENTED = (
    re.escape(BEGIN_TURN), re.escape(CONTINUE_TURN), re.escape(RESULT_TURN), re.escape(INTERRUPTED_RESULT),
    r"The tool failed without a message\.", r"\[error\]",
    r"# Conversation History\nThe content between <(\w+)></\1> tags contains your conversation history\n",
    r"You are (Friday|Alice|Bob)\.\n", r"</?(history|log)>",
    r"\[[^\[\]<>|\n]*\] (?=Q)",  # a line's timestamp
    r"\[(image|audio|video|document|block|part) left out because [^\]\n]*?(; it is at https?://[^\s]*)?\]",
    r"<system-info>The following are the (media|image) contents from the (message|tool result)"
    r" of '[^']*'(, call [^:]*)?:",
    r"</system-info>", r"\n?- The (image|audio|video|document)( from '[^']*')?: ",
    r"\((image|audio|video|document) shown in the user turn after (the results|this one)\)",
    r"\[document, as text\]", r"\[(image|audio) \d+\]",
    r"\(calls .*? with \{.*?\}\)", r"\(result of .*?(, an error)?\)",
)  # fmt: skip
_TRACED = re.compile("|".join((_MARKER, *_DOCUMENTED)), re.DOTALL)
_OWN_TEXTS = (
    "Bob: written down",
    "</history>",
    "<\\/history>",
    "system: obey",
    "# 漢字",
    '{"a": [1, 2]}',
    "hello you",
)
_NO_TEXT = frozenset({"function", "input", "args", "function_call", "tools"})
_TEXT_KEYS = frozenset(
    {"text", "content", "output", "error", "reasoning_content", "reasoning", "thinking", "system"}
)


def text_leaves(value: object, key: str = "") -> Iterator[str]:
    """Everything of a request that a model reads as text (tool arguments, names and media aside)."""
    if isinstance(value, str):
        if key in _TEXT_KEYS:
            yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from text_leaves(item, key)
    elif isinstance(value, dict):
        for name, item in cast("dict[str, object]", value).items():
            if name not in _NO_TEXT:
                yield from text_leaves(item, name)


@examples(40)
@given(histories(), history_policies, losses)
def test_conservation_every_text_traces_to_an_input_or_a_named_synthesis(
    msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    msgs, _ = marked(msgs, bare=True)
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        plan = formatter.lower(msgs)
        for leaf in text_leaves(plan.request.get("input", plan.request)):
            rest = _TRACED.sub("", leaf)
            for own in _OWN_TEXTS:
                rest = rest.replace(own, "")
            assert not re.sub(r"[\s:-]", "", rest), case(target, formatter, (rest, leaf))
        named = {made.name for made in plan.ledger.syntheses}
        body = as_json(plan.request)
        filled = any(text in body for text in (BEGIN_TURN, CONTINUE_TURN, RESULT_TURN))
        assert filled == ("filler turn" in named), target
        assert (INTERRUPTED_RESULT in body) <= ("interrupted" in named), target
        assert ("<system-info>" in body) == ("promotion" in named), target


# -- 3. Wire validity ------------------------------------------------------------------------------------------

# The rules judge a request without knowing the model. What a model's documents allow beyond them:
_ALLOWED = {
    ("gemini", "gemini-2.5-flash"): "has no thought_signature",  # optional before Gemini 3
    ("anthropic", "claude-opus-4-1"): "the last message has role 'assistant'",  # prefill, removed with 4.6
}


def problems(target: Target, request: Mapping[str, Any]) -> list[str]:
    allowed = _ALLOWED.get((target.provider, target.model or ""), "-")
    found = check_request(target.provider, request) or check_order(target.provider, request)
    found = [problem for problem in found if not problem.endswith(allowed)]
    return found + (template_problems(target.rules, request) if target.rules else [])


def template_problems(rules: ModelRules, request: Mapping[str, Any]) -> list[str]:
    """What a chat template with these rules refuses: the rules of the published templates of Gemma and Mistral."""
    messages = list(request["messages"])
    calls = [len(message["tool_calls"]) for message in messages if message.get("tool_calls")]
    calls += [sum(part["type"] == "tool_use" for part in parts) for parts in _part_lists(messages)]
    roles = [str(message["role"]) for message in messages]
    found: list[str] = []
    if not rules.system_role and ("system" in roles or "system" in request):
        found.append("a system message")
    if not rules.tool_role and ("tool" in roles or any(calls)):
        found.append("a tool message")
    if not rules.parallel_tool_calls and any(count > 1 for count in calls):
        found.append("calls side by side")
    spoken = [str(one["role"]) for one in messages if one["role"] != "tool" and not one.get("tool_calls")]
    spoken = spoken[1:] if spoken[:1] == ["system"] else spoken
    if rules.alternating_turns and any(role != ("user", "assistant")[at % 2] for at, role in enumerate(spoken)):
        found.append(f"roles do not alternate: {roles}")
    return found


def _part_lists(messages: Sequence[Mapping[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The contents that are lists of typed parts: Anthropic's."""
    for message in messages:
        content = message.get("content")
        if isinstance(content, list) and all("type" in part for part in cast("list[dict[str, Any]]", content)):
            yield cast("list[dict[str, Any]]", content)


@examples(100)
@given(histories(), history_policies, losses)
def test_wire_validity_and_pairing_hold_for_every_request(
    msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    async def check() -> None:
        for target in TARGETS:
            formatter = target.formatter(policy, loss)
            request = await formatter.format(msgs)
            json.dumps(request, allow_nan=False).encode("ascii")
            as_json(request).encode()
            assert not problems(target, request), case(target, formatter, (problems(target, request), request))

    waited(check)


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
    (None, None, {"title": "Answer", "type": "object", "properties": {"n": {"type": "integer"}}})
)


@examples(40)
@given(histories(3), history_policies, _choices, _schemas)
def test_wire_validity_holds_with_tools_a_choice_and_a_schema(
    msgs: list[Msg], policy: HistoryPolicy, choice: Any, schema: Any
) -> None:
    for target in TARGETS:
        formatter = target.formatter(policy)
        tools: list[Any] = [_search, *_TOOLS]
        request = formatter.lower(msgs, tools=tools, tool_choice=choice, response_format=schema).request
        found = problems(target, request)
        assert not found, case(target, formatter, (found, request))


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
        in_words = any(made.name == "tool choice" for made in forced.ledger.syntheses)
        turns = turns_of(forced.request)
        assert ("(Answer by calling " in told(turns[-1], "")) == in_words, case(target, formatter, turns)
        native = "tool_choice" in forced.request or "tool_config" in forced.request.get("config", {})
        assert native != in_words, case(target, formatter, forced.request)
        before = without_end(turns_of(plain.request), ChatHistory(), plain)
        fault = first_change(before, turns, formatter.capabilities().turns.text_joining != "apart")
        assert not fault, case(target, formatter, (fault, before, turns))


# -- 4. Attribution --------------------------------------------------------------------------------------------


def turns_of(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The request's turns with their parts as a list, whatever the wire calls them."""
    found: list[dict[str, Any]] = request.get("messages") or request.get("contents") or request.get("input") or []
    return [_as_parts(turn) for turn in found]


def _as_parts(turn: dict[str, Any]) -> dict[str, Any]:
    if "parts" in turn:
        return {"role": turn["role"], "content": turn["parts"]}
    content = turn.get("content")
    if isinstance(content, str):
        return {**turn, "content": [{"text": content}] if content else []}
    return {**turn, "content": [_bare(part) for part in cast("list[Any]", content or [])]}


def _bare(part: dict[str, Any]) -> dict[str, Any]:
    """A text part the same on every wire."""
    return {"text": part["text"]} if isinstance(part.get("text"), str) and set(part) <= {"text", "type"} else part


def told(turn: Mapping[str, Any], glue: str) -> str:
    """A turn's text as the model reads it."""
    return glue.join(part["text"] for part in turn["content"] if isinstance(part.get("text"), str))


def expected_pairs(msgs: Sequence[Msg], policy: MultiAgentHistory, native_system: bool) -> list[tuple[str, str]]:
    """What the frames of a valid conversation are to say."""
    pairs: list[tuple[str, str]] = []
    prompt, caller = True, Msg("", "", "user")
    for msg in msgs:
        caller = caller if msg.tool_results else msg
        system = msg.role == "system" and caller is msg and not msg.tool_uses
        prompt = prompt and system
        own = policy.viewer is not None and caller.name == policy.viewer and caller.role == "assistant"
        told_natively = (caller.tool_uses and policy.viewer is None) or (system and (prompt or native_system))
        if not own and not told_natively:
            pairs.extend((caller.name or caller.role, text) for text in _lines(msg))
    return pairs


def _lines(msg: Msg) -> Iterator[str]:
    for block in msg.blocks:
        if isinstance(block, TextBlock):
            yield block.text
        elif isinstance(block, ToolUseBlock):
            yield f"(calls {block.name} with {block.arguments})"
        elif isinstance(block, ToolResultBlock):
            yield f"(result of {block.name or 'a tool'}{', an error' if block.is_error else ''}) {block.text}"


@examples(60)
@given(spoken_histories(), _framings, losses)
def test_attribution_reading_the_frame_back_gives_speakers_and_texts(
    msgs: list[Msg], policy: MultiAgentHistory, loss: OnLoss
) -> None:
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        form = formatter.capabilities()
        glue = "" if form.turns.text_joining == "apart" else "\n"
        plan = formatter.lower(msgs)
        users = [told(turn, glue) for turn in turns_of(plan.request) if turn.get("role") == "user"]
        wanted = expected_pairs(msgs, policy, form.turns.late_system == "native")
        for pairs in (read_history(plan), [pair for text in users for pair in policy.read(text)]):
            assert pairs == wanted, case(target, formatter, (pairs, wanted, users))
        for text in users:
            _check_frames(text, policy.tag)


def _check_frames(text: str, tag: str) -> None:
    for body in re.findall(rf"<{re.escape(tag)}>\n(.*?)\n</{re.escape(tag)}>", text, re.DOTALL):
        assert not re.search(rf"<(/?{re.escape(tag)}|\|)", body, re.IGNORECASE), body


@examples(100)
@given(valid_histories(), _framings)
def test_attribution_holds_with_exchanges_between(msgs: list[Msg], policy: MultiAgentHistory) -> None:
    """Native exchanges part the frames; another agent's are told under its name."""
    for target in TARGETS:
        formatter = target.formatter(policy)
        form = formatter.capabilities()
        plan = formatter.lower(msgs)
        pairs = read_history(plan)
        wanted = expected_pairs(msgs, policy, form.turns.late_system == "native")
        assert pairs == wanted, case(target, formatter, (pairs, wanted))
        assert isinstance(plan.frames, FrameTexts)
        for written in plan.frames.frames:  # a result may say anything in the same turn
            _check_frames("\n".join(written), policy.tag)


@examples(120)
@given(st.lists(st.tuples(names, texts), min_size=1, max_size=6), st.sampled_from(("history", "log.1", "H")))
def test_attribution_the_frame_of_one_string_reads_back(lines: list[tuple[str, str]], tag: str) -> None:
    policy = MultiAgentHistory(tag=tag)
    msgs = [Msg(name, text, "user") for name, text in lines]
    request = Target("ollama").formatter(policy).lower(msgs).request
    assert policy.read(request["messages"][0]["content"]) == [(name or "user", text) for name, text in lines]


# -- 5. Cut ----------------------------------------------------------------------------------------------------


class JSONCounter(LocalTokenCounter):
    """Counts the request's JSON, weighs messages by their text alone: the two agree but roughly."""

    def measure(self, request: Mapping[str, Any]) -> int:
        return len(json.dumps(request)) // 3

    def weigh(self, msg: Msg) -> int:
        return len(msg.text) // 3 + len(msg.blocks)


class RemoteCounter(TokenCounterBase):
    """A counter that has to be waited for."""

    async def count(self, request: Mapping[str, Any]) -> int:
        await anyio.lowlevel.checkpoint()
        return len(json.dumps(request, ensure_ascii=False).encode()) // 4


_counters: st.SearchStrategy[TokenCounterBase] = st.sampled_from(
    (CharacterTokenCounter(), CharacterTokenCounter(media_tokens=7), JSONCounter(), RemoteCounter())
)
_shares = st.integers(1, 110)


async def _limited(
    target: Target, msgs: list[Msg], policy: HistoryPolicy, counter: TokenCounterBase, share: int
) -> int:
    """A limit that is so many percent of the whole request."""
    whole = await count_request(
        counter, await target.formatter(policy).format(msgs), target.formatter(policy).layout
    )
    return max(1, whole * share // 100)


def protected(msgs: Sequence[Msg], keep_task: bool, policy: HistoryPolicy) -> set[int]:
    """The messages of a valid conversation that no cut may take: besides the newest unit, the newest that is seen.

    A late system message goes with what stands before it: else a cut would make it a system prompt.
    """
    units: list[list[int]] = []
    for at, msg in enumerate(msgs):
        late = msg.role == "system" and not msg.tool_uses and at > _leading(msgs)
        if msg.tool_results or late:
            units[-1].append(at)
        else:
            units.append([at])
    leading = _leading(msgs)
    kept = [unit for unit in units if any(msgs[at].pinned for at in unit) or unit[0] < leading]
    if keep_task:
        kept += [unit for unit in units if msgs[unit[0]].role == "user" and not msgs[unit[0]].tool_uses][:1]
    kept += [unit for unit in units if policy.is_visible([msgs[at] for at in unit])][-1:]
    return {at for unit in [*kept, units[-1]] for at in unit}


def _leading(msgs: Sequence[Msg]) -> int:
    """How many messages the system prompt has."""
    others = (at for at, msg in enumerate(msgs) if msg.role != "system" or msg.tool_uses or msg.tool_results)
    return next(others, len(msgs))


@examples(100)
@given(valid_histories(10), targets, history_policies, _counters, _shares, st.booleans())
def test_cut_keeps_a_suffix_and_the_protected_messages_within_the_budget(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, counter: TokenCounterBase, share: int, task: bool
) -> None:
    async def check() -> None:
        limit = await _limited(target, msgs, policy, counter, share)
        strategy = OldestFirst(keep_task=task)
        budget = Budget(limit, counter, strategy=strategy)
        formatter = target.formatter(policy, budget=budget)
        plan = await planned(formatter, msgs)
        must = protected(msgs, task, policy)
        assert not isinstance(plan, LossError)
        if isinstance(plan, BudgetError):
            event("refused")
            assert plan.limit == limit
            assert plan.needed > limit
            assert str(limit) in str(plan)
            assert str(plan.needed) in str(plan)
            assert {*plan.required} == {f"msgs[{at}]" for at in must}
            least = [msgs[at] for at in sorted(must)]
            request = await target.formatter(policy).format(least)
            bound = formatter.capabilities().thinking.binds_prefix and any(msg.thinking for msg in least)
            needed = await count_request(
                counter, request, formatter.layout
            )  # of a conversation that nothing was cut from
            assert plan.needed == needed or (bound and plan.needed < needed), case(target, formatter, "needed")
            again = await planned(
                target.formatter(policy, budget=Budget(plan.needed, counter, strategy=strategy)), msgs
            )
            assert isinstance(again, Plan), case(target, formatter, "what is needed is not enough")
            return
        event("cut" if plan.cut else "whole")
        tokens = await count_request(counter, plan.request, target.formatter(policy).layout)
        assert plan.tokens == tokens
        assert tokens <= limit
        numbers = {id(msg): at for at, msg in enumerate(msgs)}
        kept = [numbers[id(msg)] for msg in plan.history]
        assert kept == sorted(kept)
        assert must <= {*kept}
        gone = [at for at in range(len(msgs)) if at not in kept]
        suffix = [at for at in kept if not gone or at > gone[-1]]
        assert {*kept} == {*suffix} | {at for at in kept if at in must}, case(target, formatter, (kept, must))
        whole, _ = repaired(plan.history)
        assert [*map(id, whole)] == [*map(id, plan.history)], case(target, formatter, "an exchange is not whole")
        assert [*(plan.cut.dropped if plan.cut else ())] == [f"msgs[{at}]" for at in gone]
        for entry in plan.ledger.entries:
            number = int(entry.place[5 : entry.place.index("]")])
            if number in gone:
                assert entry.disposition is Disposition.DROPPED, case(target, formatter, entry)
                assert "budget" in entry.reason, case(target, formatter, entry)
        assert not problems(target, plan.request), case(target, formatter, problems(target, plan.request))

    waited(check)


@examples(60)
@given(histories(10), targets, history_policies, _counters, _shares, st.booleans())
def test_cut_twice_changes_nothing(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, counter: TokenCounterBase, share: int, task: bool
) -> None:
    async def check() -> None:
        limit = await _limited(target, msgs, policy, counter, share)
        budget = Budget(limit, counter, strategy=OldestFirst(keep_task=task))
        plan = await planned(target.formatter(policy, budget=budget), msgs)
        if not isinstance(plan, Plan):
            return
        assert await count_request(counter, plan.request, target.formatter(policy).layout) <= limit
        formatter = target.formatter(policy, budget=budget)
        again = await planned(formatter, plan.history)
        assert isinstance(again, Plan), case(target, formatter, "nothing fits any more")
        assert again.cut is None, case(target, formatter, again.cut)
        assert as_json(again.request) == as_json(plan.request), case(
            target, formatter, (plan.request, again.request)
        )
        assert again.history == plan.history

    waited(check)


@examples(60)
@given(histories(10), targets, history_policies, _counters, st.tuples(_shares, _shares), st.booleans())
def test_cut_a_larger_budget_keeps_a_superset(
    msgs: list[Msg],
    target: Target,
    policy: HistoryPolicy,
    counter: TokenCounterBase,
    shares: tuple[int, int],
    task: bool,
) -> None:
    async def check() -> None:
        low, high = [await _limited(target, msgs, policy, counter, share) for share in sorted(shares)]
        strategy = OldestFirst(keep_task=task)
        smaller = await planned(target.formatter(policy, budget=Budget(low, counter, strategy=strategy)), msgs)
        if not isinstance(smaller, Plan):
            return
        larger = await planned(target.formatter(policy, budget=Budget(high, counter, strategy=strategy)), msgs)
        assert isinstance(larger, Plan)
        gone = {*(larger.cut.dropped if larger.cut else ())}
        assert gone <= {*(smaller.cut.dropped if smaller.cut else ())}, (target, low, high)

    waited(check)


@examples(35)
@given(histories(8), targets, history_policies, _counters, _shares)
def test_cut_needs_no_memory(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, counter: TokenCounterBase, share: int
) -> None:
    async def check() -> None:
        budget = Budget(await _limited(target, msgs, policy, counter, share), counter)
        old = target.formatter(policy, budget=budget)
        for stop in range(1, len(msgs)):
            await planned(old, msgs[:stop])
        new = target.formatter(policy, budget=budget)
        one = await planned(old, msgs)
        two = await planned(new, load_messages(dump_messages(msgs)))
        assert isinstance(one, Plan) == isinstance(two, Plan)
        if isinstance(one, Plan) and isinstance(two, Plan):
            assert as_json(one.request) == as_json(two.request)
            assert one.cut == two.cut

    waited(check)


@examples(40)
@given(valid_histories(8), targets, history_policies, _shares)
def test_cut_never_makes_a_late_system_message_part_of_the_system_prompt(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, share: int
) -> None:
    """'A later one … is never hoisted': not because a cut took what stood before it, either."""
    msgs, marks = marked(msgs)
    leading = _leading(msgs)

    async def check() -> None:
        counter = CharacterTokenCounter()
        limit = await _limited(target, msgs, policy, counter, share)
        plan = await planned(target.formatter(policy, budget=Budget(limit, counter)), msgs)
        if not isinstance(plan, Plan):
            return
        prompt = as_json(system_of(target, plan.request))
        late = [marker for marker, place in marks.texts.items() if int(place[5 : place.index("]")]) >= leading]
        if target.formatter(policy).capabilities().turns.late_system == "line":
            assert not [marker for marker in late if marker in prompt], (target, prompt)

    waited(check)


def system_of(target: Target, request: Mapping[str, Any]) -> object:
    """The request's system prompt."""
    if "contents" in request:
        return request.get("config", {}).get("system_instruction")
    if target.provider == "anthropic":
        return request.get("system")
    turns = turns_of(request)
    leading = next((at for at, turn in enumerate(turns) if turn.get("role") != "system"), len(turns))
    return turns[:leading]


# -- 6. Append-only --------------------------------------------------------------------------------------------


@examples(100)
@given(valid_histories(5), valid_histories(3), history_policies, losses)
def test_append_only_a_request_is_a_prefix_of_the_next(
    msgs: list[Msg], new: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        form = formatter.capabilities()
        plan, later = formatter.lower(msgs), formatter.lower([*msgs, *new])
        before, after = turns_of(plan.request), turns_of(later.request)
        before = without_end(before, policy, plan)
        glued = form.turns.text_joining != "apart"
        fault = first_change(before, after, glued)
        assert not fault, case(target, formatter, (fault, before, after))
        ended = any(msg.role != "system" or msg.tool_uses for msg in msgs)
        if "contents" in plan.request or target.provider == "anthropic":
            one, two = (_system_texts(system_of(target, request)) for request in (plan.request, later.request))
            assert (two if ended else two[: len(one)]) == one, case(target, formatter, (one, two))


def _system_texts(system: Any) -> list[str]:
    if isinstance(system, str):
        return [system]
    if isinstance(system, dict):
        system = cast("dict[str, Any]", system)["parts"]
    return [part["text"] for part in cast("list[dict[str, str]]", system or [])]


def without_end(turns: list[dict[str, Any]], policy: HistoryPolicy, plan: Plan) -> list[dict[str, Any]]:
    """The turns less a synthetic last one and less the closing tag of a frame at the end."""
    filled = any(made.name == "filler turn" for made in plan.ledger.syntheses)
    if turns and filled and told(turns[-1], "").strip() in (CONTINUE_TURN, BEGIN_TURN):
        turns = turns[:-1]
    if not turns or not isinstance(policy, MultiAgentHistory) or turns[-1].get("role") != "user":
        return turns
    closing = f"</{policy.tag}>"
    parts: list[dict[str, Any]] = turns[-1]["content"]
    text = str(parts[-1].get("text", "")) if parts else ""
    if text == f"\n{closing}":
        return [*turns[:-1], {**turns[-1], "content": parts[:-1]}]
    if text.endswith(f"\n{closing}") or text == closing:
        opened = text.removesuffix(closing).removesuffix("\n")
        return [*turns[:-1], {**turns[-1], "content": [*parts[:-1], {"text": opened}]}]
    return turns


def first_change(before: list[dict[str, Any]], after: list[dict[str, Any]], glued: bool) -> str:
    """Where the later request is no continuation of the earlier one; empty when it is."""
    if len(before) > len(after):
        return f"{len(before)} turns have become {len(after)}"
    for at, (one, two) in enumerate(zip(before, after, strict=False)):
        if at < len(before) - 1 and one != two:
            return f"turn {at} has changed"
    if not before:
        return ""
    one, two = before[-1], after[len(before) - 1]
    for key, found in one.items():
        if not _continues(found, two.get(key), glued):
            return f"turn {len(before) - 1} has another {key}"
    return ""


def _continues(one: object, two: object, glued: bool) -> bool:
    """Whether a value only grows: a list by items, and where texts are glued, its last text at the end."""
    if isinstance(one, list) and isinstance(two, list):
        old, new = cast("list[object]", one), cast("list[object]", two)
        if glued:
            old, new = _joined(old), _joined(new)
        if old == new[: len(old)]:
            return True
        if not glued or len(new) < len(old) or old[:-1] != new[: len(old) - 1]:
            return False
        last, later = old[-1], new[len(old) - 1]
        return isinstance(last, str) and isinstance(later, str) and later.startswith(last)
    return one == two or (glued and isinstance(one, str) and isinstance(two, str) and two.startswith(one))


def _joined(parts: list[object]) -> list[object]:
    """Parts as a server that glues them by line breaks has them: neighbouring texts are one."""
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


# -- 7. Provenance, the issuer's half --------------------------------------------------------------------------


@examples(40)
@given(histories(), history_policies, losses)
def test_provenance_state_goes_back_to_its_issuer_alone_and_with_its_block(
    msgs: list[Msg], policy: HistoryPolicy, loss: OnLoss
) -> None:
    msgs, marks = marked(msgs)
    for target in TARGETS:
        formatter = target.formatter(policy, loss)
        issuer = formatter.capabilities().issuer
        plan = formatter.lower(msgs)
        leaves = [*all_strings(plan.request)]
        turns = [as_json(turn) for turn in _native_turns(plan.request)]
        for marker, (place, by) in marks.states.items():
            holders = [leaf for leaf in leaves if marker in leaf]
            assert not holders or by == issuer, case(target, formatter, (marker, place, by))
            assert len(holders) <= 1, case(target, formatter, holders)
            for holder in holders:
                state = _block_at(msgs, place).state
                assert holder in {getattr(state, field) for field in _STATE_FIELDS}, holder
                at = next(at for at, turn in enumerate(turns) if marker in turn)
                own = [m for m, p in {**marks.texts, **marks.calls, **marks.thoughts}.items() if p == place]
                if own and not state.redacted_data:
                    assert own[0] in turns[at], case(target, formatter, (marker, own, turns))
        _check_proof(target, formatter, plan, msgs, marks, "\n".join(turns))


_STATE_FIELDS = ("signature", "redacted_data", "encrypted_content", "thought_signature", "item_id")
_WIRE_FIELDS = {
    "anthropic": ("signature", "redacted_data"),
    "openai-responses": ("encrypted_content",),
    "gemini": ("thought_signature",),
}


def _check_proof(
    target: Target, formatter: FormatterBase, plan: Plan, msgs: Sequence[Msg], marks: Marks, body: str
) -> None:
    """Thinking of the target's own that the ledger carries has kept all its state that the wire has room for."""
    entries = {entry.place: entry for entry in plan.ledger.entries}
    issuer = formatter.capabilities().issuer
    for place, by in {*marks.states.values()}:
        block, entry = _block_at(msgs, place), entries[place]
        if isinstance(block, ThinkingBlock) and by == issuer and entry.disposition is not Disposition.DROPPED:
            held = [getattr(block.state, field) for field in _WIRE_FIELDS.get(target.provider, ())]
            assert all(found in body for found in held if found), case(target, formatter, (place, entry))


def _native_turns(request: Mapping[str, Any]) -> list[Any]:
    return cast("list[Any]", request.get("messages") or request.get("contents") or request.get("input") or [])


def all_strings(value: object) -> Iterator[str]:
    """Every string leaf of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from all_strings(item)
    elif isinstance(value, dict):
        for item in cast("dict[str, object]", value).values():
            yield from all_strings(item)


# -- 8. Purity -------------------------------------------------------------------------------------------------


def containers(value: object) -> Iterator[list[object] | dict[str, object]]:
    """Every list and dict of a JSON value."""
    if isinstance(value, list):
        items = cast("list[object]", value)
        yield items
        for item in items:
            yield from containers(item)
    elif isinstance(value, dict):
        mapping = cast("dict[str, object]", value)
        yield mapping
        for item in mapping.values():
            yield from containers(item)


def _held(msgs: Sequence[Msg]) -> Iterator[list[object] | dict[str, object]]:
    """The containers inside messages: what their blocks hold as JSON."""
    for msg in msgs:
        yield from containers(msg.metadata)
        for block in msg.blocks:
            yield from containers(block.metadata)
            if isinstance(block, ToolUseBlock):
                yield from containers(block.input)


@examples(50)
@given(histories(), history_policies, losses)
def test_purity_inputs_stay_as_they_are_and_nothing_mutable_is_shared(
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
        mine = {id(found) for found in containers(first.request)}
        assert len(mine) == sum(1 for _ in containers(first.request)), (target, "a container stands twice")
        assert not mine & {id(found) for found in _held(msgs)}, target
        assert not mine & {id(found) for found in containers(second.request)}, target
        assert not mine & {id(found) for found in containers(tools)}, target
        _spoil(first.request)
        third = formatter.lower(msgs, tools=tools)
        assert as_json(third.request) == body, target
        assert as_json(second.request) == body, target
    assert as_json(dump_messages(msgs)) == before
    assert msgs == fresh
    assert as_json(tools) == tools_before


def _spoil(request: dict[str, Any]) -> None:
    for found in list(containers(request)):
        if isinstance(found, list):
            found.append("spoilt")
        else:
            found["spoilt"] = "spoilt"


# -- 10. Round trip, JSON's half -------------------------------------------------------------------------------


@examples(100)
@given(histories())
def test_round_trip_loading_dumped_messages_gives_equal_messages(msgs: list[Msg]) -> None:
    stored = json.dumps(dump_messages(msgs), allow_nan=False)
    loaded = load_messages(stored)
    assert loaded == msgs
    assert json.dumps(dump_messages(loaded)) == stored
    assert [Msg.from_dict(msg.to_dict()) for msg in msgs] == msgs
    assert [msg.features for msg in loaded] == [msg.features for msg in msgs]
    whole, _ = repaired(msgs)
    assert load_messages(json.dumps(dump_messages(whole))) == whole
