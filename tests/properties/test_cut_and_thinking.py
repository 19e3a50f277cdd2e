"""An agent that thinks, under every budget: a server that binds thinking to its prefix never has to refuse.

The server is written from what the providers document (Anthropic, build-with-claude/preserved-thinking and
…/prefix-checks), and shares nothing with `agentkit.formatting.thinking_prefix`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from agentkit import (
    Block,
    Budget,
    BudgetError,
    ChatHistory,
    CutStrategy,
    HistoryPolicy,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    Plan,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    load_provider,
    prefix_digest,
)
from tests.profiles import examples
from tests.properties.test_cut_invariants import counters, pipelines
from tests.properties.test_invariants import waited
from tests.wire.walker import check_request

LOOK = Tool("look", "Look at a place.", {"type": "object", "properties": {"place": {"type": "string"}}})
BINDING = (
    ("anthropic", "claude-opus-5-5"),
    ("anthropic", None),
    ("openai-responses", "gpt-6.2"),
    ("openai-responses", None),
)


# -- a server that refuses -------------------------------------------------------------------------------------


@dataclass
class Server:
    """Knows of every proof the request it was issued for, and refuses one that stands anywhere else.

    The first thinking of a reply stands behind exactly the request that the reply answered, and each later
    one right behind the one before: what is missing in the middle is a gap.
    """

    issued: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    """By proof: the request that it was issued for, and the proof before it in the same reply."""

    def issue(self, request: Mapping[str, Any], proofs: Sequence[str]) -> None:
        """A reply to a request, with these proofs in it."""
        prefix = _text_of(request, _positions(request)[-1])
        for before, proof in zip(("", *proofs), proofs, strict=False):
            self.issued[proof] = (prefix, before)

    def refusals(self, request: Mapping[str, Any]) -> list[str]:
        """Why this request gets a 400; nothing if it does not."""
        found: list[str] = []
        last = ""
        for position, part in zip(_positions(request), _parts(request), strict=False):
            proof = part.get("signature") or part.get("data") or part.get("encrypted_content")
            if not isinstance(proof, str) or proof not in self.issued:
                continue
            prefix, before = self.issued[proof]
            if before and last != before:
                found.append(f"{proof}: {before} is missing before it")
            elif not before and _text_of(request, position) != prefix:
                found.append(f"{proof}: bound to a different conversation")
            last = proof
        return found


def _flat(request: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every part with its turn's role, as the server has them once it merged turns of one role."""
    found: list[tuple[str, dict[str, Any]]] = []
    turns = cast("list[dict[str, Any]]", request.get("messages") or request.get("input"))
    for turn in turns:
        content: Any = turn.get("content")
        if isinstance(content, str):
            found.append((turn["role"], {"type": "text", "text": content}))
        elif isinstance(content, list):
            found.extend((turn["role"], part) for part in cast("list[dict[str, Any]]", content))
        else:
            found.append((str(turn.get("role")), turn))
    return found


def _parts(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [part for _, part in _flat(request)]


def _positions(request: Mapping[str, Any]) -> range:
    return range(len(_flat(request)) + 1)


def _text_of(request: Mapping[str, Any], stop: int) -> str:
    """What a block at a position is bound to: system prompt, tools, and all that stands before it."""
    head = {name: request.get(name) or None for name in ("system", "instructions", "tools")}
    if isinstance(head["system"], str):
        head["system"] = [{"type": "text", "text": head["system"]}]
    return json.dumps([_unmarked(head), _unmarked(_flat(request)[:stop])], sort_keys=True)


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _unmarked(item) for key, item in pairs if key != "cache_control"}
    if isinstance(value, list | tuple):
        return [_unmarked(item) for item in cast("list[Any]", value)]
    return value


# -- an agent --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Round:
    """One reply: how often it thinks and calls, how long the answers are, who speaks behind it."""

    thoughts: int
    calls: int
    length: int
    speakers: tuple[str, ...]
    adopt: bool


rounds = st.lists(
    st.builds(
        Round,
        thoughts=st.integers(0, 2),
        calls=st.sampled_from((0, 1, 1, 1, 3)),
        length=st.sampled_from((0, 5, 40, 150, 400)),
        speakers=st.sampled_from((("Bob",), ("Bob", "Alice"), ())),
        adopt=st.booleans(),
    ),
    min_size=4, max_size=14,
)  # fmt: skip


class Agent:
    """A ReAct loop with a provider that binds thinking."""

    def __init__(self, provider: str, digests: bool) -> None:
        self.provider = provider
        self.digests = digests
        self.server = Server()
        self.number = 0
        self.msgs = [Msg("system", "Be brief.", "system"), Msg("Bob", "Find the library. " * 5, "user")]

    def answer(self, request: Mapping[str, Any], one: Round) -> None:
        """The reply to a request, and what is said behind it."""
        prefix = prefix_digest(request, load_provider(self.provider)) if self.digests else None
        blocks: list[Block] = []
        proofs: list[str] = []
        for at in range(one.thoughts):
            proofs.append(f"proof-{self.number}-{at}")
            blocks.append(ThinkingBlock(f"thought of {proofs[-1]}", self.state(proofs[-1], prefix)))
        calls = [ToolUseBlock(f"c{self.number}_{at}", "look", {"place": str(at)}) for at in range(one.calls)]
        blocks += calls or [TextBlock(f"I have an answer, the number {self.number}.")]
        self.number += 1
        self.server.issue(request, proofs)
        self.msgs.append(Msg("Friday", blocks, "assistant"))
        results = [ToolResultBlock(call.id, "look", f"{call.id} " + "word " * one.length) for call in calls]
        self.msgs += [Msg("system", [found], "system") for found in results]

        for name in () if calls else one.speakers:
            self.msgs.append(Msg(name, f"Go on, {self.number}. " + "word " * (one.length // 4), "user"))

    def state(self, proof: str, prefix: str | None) -> OpaqueState:
        if self.provider == "anthropic":
            return OpaqueState("anthropic", signature=proof, prefix=prefix)
        return OpaqueState("openai", encrypted_content=proof, prefix=prefix)


policies: st.SearchStrategy[HistoryPolicy] = st.sampled_from(
    (ChatHistory(), ChatHistory(), MultiAgentHistory(viewer="Friday"), MultiAgentHistory())
)


@examples(70)
@given(
    st.sampled_from(BINDING), policies, pipelines(), counters, rounds,
    st.integers(250, 900), st.sampled_from(("never", "always", "at times")), st.booleans(),
)  # fmt: skip
def test_no_request_of_an_agent_is_refused_for_its_thinking(
    target: tuple[str, str | None], policy: HistoryPolicy, strategy: list[CutStrategy], counter: Any,
    plot: list[Round], limit: int, adopts: str, digests: bool,
) -> None:  # fmt: skip
    provider, model = target
    agent = Agent(provider, digests)
    budget = Budget(limit, counter, strategy=strategy)
    formatter = load_provider(provider).chat_formatter(model, history=policy, budget=budget)

    async def run() -> None:
        for one in plot:
            found = await planned_with_tools(formatter, agent.msgs)
            if found is None:
                event("refused")
                return
            refusals = agent.server.refusals(found.request)
            assert not refusals, (target, policy, strategy, refusals, found.cut)
            assert not check_request(provider, found.request)
            if found.cut:
                event("cut")
            if adopts == "always" or (adopts == "at times" and one.adopt):
                agent.msgs = list(found.history)
            agent.answer(found.request, one)

    waited(run)


async def planned_with_tools(formatter: Any, msgs: Sequence[Msg]) -> Plan | None:
    try:
        return cast("Plan", await formatter.plan(msgs, tools=[LOOK]))
    except BudgetError:
        return None


@pytest.mark.parametrize("fault", ["an earlier message", "the system prompt", "a gap", "brought back"])
def test_the_server_refuses_what_the_provider_refuses(fault: str) -> None:
    """The server of these tests is no rubber stamp."""
    agent = Agent("anthropic", digests=False)
    free = load_provider("anthropic").chat_formatter("claude-opus-4-1")
    for _ in range(3):
        request = waited(lambda: planned_with_tools(free, agent.msgs)).request
        assert not agent.server.refusals(request)
        agent.answer(request, Round(1, 1, 5, (), adopt=False))
    request = waited(lambda: planned_with_tools(free, agent.msgs)).request
    assert not agent.server.refusals(request)
    turns = request["messages"]
    if fault == "an earlier message":
        turns[0]["content"] = "Something else."
    elif fault == "the system prompt":
        request["system"] = "Be verbose."
    elif fault == "a gap":
        turns[3]["content"] = turns[3]["content"][1:]
    else:
        without = [
            {**turn, "content": [p for p in turn["content"] if p["type"] != "thinking"]} for turn in turns[:5]
        ]
        agent.server.issue({**request, "messages": without}, ["proof-2-0"])
    assert agent.server.refusals(request)
