"""An agent with thinking and any budget: a server that binds thinking to its prefix never refuses a request.

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
    """Server that records the request of every proof and refuses the proof at any other position.

    The first thinking block of a reply must follow exactly the request of the reply, and each later block must
    follow the block before it.
    """

    issued: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    """By proof: the request that it was issued for, and the proof before it in the same reply."""

    def issue(self, request: Mapping[str, Any], proofs: Sequence[str]) -> None:
        """A reply to a request, with these proofs in it."""
        prefix = _get_prefix(request, _positions(request)[-1])
        for before, proof in zip(("", *proofs), proofs, strict=False):
            self.issued[proof] = (prefix, before)

    def refusals(self, request: Mapping[str, Any]) -> list[str]:
        """Why this request gets a 400; nothing if it does not."""
        problems: list[str] = []
        last = ""
        for position, part in zip(_positions(request), _parts(request), strict=False):
            proof = part.get("signature") or part.get("data") or part.get("encrypted_content")
            if not isinstance(proof, str) or proof not in self.issued:
                continue
            prefix, before = self.issued[proof]
            if before and last != before:
                problems.append(f"{proof}: {before} is missing before it")
            elif not before and _get_prefix(request, position) != prefix:
                problems.append(f"{proof}: bound to a different conversation")
            last = proof
        return problems


def _flat(request: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Every part with its turn's role, as the server has them once it merged turns of one role."""
    proofs: list[tuple[str, dict[str, Any]]] = []
    turns = cast("list[dict[str, Any]]", request.get("messages") or request.get("input"))
    for turn in turns:
        content: Any = turn.get("content")
        if isinstance(content, str):
            proofs.append((turn["role"], {"type": "text", "text": content}))
        elif isinstance(content, list):
            proofs.extend((turn["role"], part) for part in cast("list[dict[str, Any]]", content))
        else:
            proofs.append((str(turn.get("role")), turn))
    return proofs


def _parts(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [part for _, part in _flat(request)]


def _positions(request: Mapping[str, Any]) -> range:
    return range(len(_flat(request)) + 1)


def _get_prefix(request: Mapping[str, Any], stop: int) -> str:
    """Returns the prefix of a position: system prompt, tools, and all blocks before the position."""
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
    """One reply: the number of its thinking blocks and calls, the length of the results, and the next speaker."""

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

    def answer(self, request: Mapping[str, Any], round_: Round) -> None:
        """Adds the reply to a request and the messages after it."""
        prefix = prefix_digest(request, load_provider(self.provider)) if self.digests else None
        blocks: list[Block] = []
        proofs: list[str] = []
        for index in range(round_.thoughts):
            proofs.append(f"proof-{self.number}-{index}")
            blocks.append(ThinkingBlock(f"thought of {proofs[-1]}", self.state(proofs[-1], prefix)))
        calls = [
            ToolUseBlock(f"c{self.number}_{index}", "look", {"place": str(index)}) for index in range(round_.calls)
        ]
        blocks += calls or [TextBlock(f"I have an answer, the number {self.number}.")]
        self.number += 1
        self.server.issue(request, proofs)
        self.msgs.append(Msg("Friday", blocks, "assistant"))
        results = [ToolResultBlock(call.id, "look", f"{call.id} " + "word " * round_.length) for call in calls]
        self.msgs += [Msg("system", [result], "system") for result in results]

        for name in () if calls else round_.speakers:
            self.msgs.append(Msg(name, f"Go on, {self.number}. " + "word " * (round_.length // 4), "user"))

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
        for round_ in plot:
            plan = await planned_with_tools(formatter, agent.msgs)
            if plan is None:
                event("refused")
                return
            refusals = agent.server.refusals(plan.request)
            assert not refusals, (target, policy, strategy, refusals, plan.cut)
            assert not check_request(provider, plan.request)
            if plan.cut:
                event("cut")
            if adopts == "always" or (adopts == "at times" and round_.adopt):
                agent.msgs = list(plan.history)
            agent.answer(plan.request, round_)

    waited(run)


async def planned_with_tools(formatter: Any, msgs: Sequence[Msg]) -> Plan | None:
    try:
        return cast("Plan", await formatter.plan(msgs, tools=[LOOK]))
    except BudgetError:
        return None


@pytest.mark.parametrize("fault", ["an earlier message", "the system prompt", "a gap", "brought back"])
def test_the_model_of_the_server_refuses_the_same_requests_as_the_provider(fault: str) -> None:
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
