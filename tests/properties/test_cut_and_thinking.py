"""Requests of an agent with any budget are valid for a server that binds thinking to its prefix.

The server follows the documentation of the providers (Anthropic, build-with-claude/preserved-thinking and
…/prefix-checks), and shares no code with `agentkit.formatting.thinking_prefix`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

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
from tests.cases import each_case
from tests.profiles import examples
from tests.properties.test_cut_invariants import counters, pipelines
from tests.properties.test_invariants import run_async
from tests.wire.shapes import check_request

LOOK = Tool("look", "Look at a place.", {"type": "object", "properties": {"place": {"type": "string"}}})
TARGETS = (
    ("anthropic", "claude-opus-5-5"),
    ("anthropic", None),
    ("openai-responses", "gpt-6.2"),
    ("openai-responses", None),
)


# -- the simulated server -------------------------------------------------------------------------------------


@dataclass
class Server:
    """Server that records the request of every proof and refuses the proof at any other position.

    The first thinking block of a reply must follow exactly the request of the reply, and each later block must
    follow the block before it.
    """

    issued: dict[str, tuple[str, str]] = field(default_factory=dict[str, "tuple[str, str]"])
    """Prefix that ends with the request of the reply, and the previous proof of the same reply, by proof."""

    def issue(self, request: Mapping[str, Any], proofs: Sequence[str]) -> None:
        """Records a reply with `proofs` to a request."""
        prefix = _get_prefix(request, _get_positions(request)[-1])
        for before, proof in zip(("", *proofs), proofs, strict=False):
            self.issued[proof] = (prefix, before)

    def get_refusals(self, request: Mapping[str, Any]) -> list[str]:
        """Returns the reasons to refuse a request with status 400. Empty if the request is valid."""
        problems: list[str] = []
        last = ""
        for position, part in zip(_get_positions(request), _get_parts(request), strict=False):
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


def _get_parts_with_roles(request: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Returns every part with the role of its turn."""
    parts: list[tuple[str, dict[str, Any]]] = []
    turns = cast("list[dict[str, Any]]", request.get("messages") or request.get("input"))
    for turn in turns:
        content: Any = turn.get("content")
        if isinstance(content, str):
            parts.append((turn["role"], {"type": "text", "text": content}))
        elif isinstance(content, list):
            parts.extend((turn["role"], part) for part in cast("list[dict[str, Any]]", content))
        else:
            parts.append((str(turn.get("role")), turn))
    return parts


def _get_parts(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [part for _, part in _get_parts_with_roles(request)]


def _get_positions(request: Mapping[str, Any]) -> range:
    return range(len(_get_parts_with_roles(request)) + 1)


def _get_prefix(request: Mapping[str, Any], stop: int) -> str:
    """Returns the prefix of a position: system prompt, tools, and all blocks before the position."""
    head = {name: request.get(name) or None for name in ("system", "instructions", "tools")}
    if isinstance(head["system"], str):
        head["system"] = [{"type": "text", "text": head["system"]}]
    return json.dumps(
        [_remove_cache_markers(head), _remove_cache_markers(_get_parts_with_roles(request)[:stop])], sort_keys=True
    )


def _remove_cache_markers(value: Any) -> Any:
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _remove_cache_markers(item) for key, item in pairs if key != "cache_control"}
    if isinstance(value, list | tuple):
        return [_remove_cache_markers(item) for item in cast("list[Any]", value)]
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
    """Agent that runs a ReAct loop with a provider that binds thinking to its prefix."""

    def __init__(self, provider: str, digests: bool) -> None:
        self.provider = provider
        self.digests = digests
        self.server = Server()
        self.number = 0
        self.msgs = [Msg("system", "Be brief.", "system"), Msg("Bob", "Find the library. " * 5, "user")]

    def add_reply(self, request: Mapping[str, Any], round_: Round) -> None:
        """Adds the reply to a request and the messages after it."""
        prefix = prefix_digest(request, load_provider(self.provider)) if self.digests else None
        blocks: list[Block] = []
        proofs: list[str] = []
        for index in range(round_.thoughts):
            proofs.append(f"proof-{self.number}-{index}")
            blocks.append(ThinkingBlock(f"thought of {proofs[-1]}", self._create_state(proofs[-1], prefix)))
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

    def _create_state(self, proof: str, prefix: str | None) -> OpaqueState:
        if self.provider == "anthropic":
            return OpaqueState("anthropic", signature=proof, prefix=prefix)
        return OpaqueState("openai", encrypted_content=proof, prefix=prefix)


policies: st.SearchStrategy[HistoryPolicy] = st.sampled_from(
    (ChatHistory(), ChatHistory(), MultiAgentHistory(viewer="Friday"), MultiAgentHistory())
)


@examples(70)
@given(
    st.sampled_from(TARGETS), policies, pipelines(), counters, rounds,
    st.integers(250, 900), st.sampled_from(("never", "always", "at times")), st.booleans(),
)  # fmt: skip
def test_no_request_of_an_agent_is_refused_for_its_thinking(
    target: tuple[str, str | None], policy: HistoryPolicy, strategy: list[CutStrategy], counter: Any,
    replies: list[Round], limit: int, adopts: str, digests: bool,
) -> None:  # fmt: skip
    provider, model = target
    agent = Agent(provider, digests)
    budget = Budget(limit, counter, strategy=strategy)
    formatter = load_provider(provider).chat_formatter(model, history=policy, budget=budget)

    async def run() -> None:
        for round_ in replies:
            plan = await try_plan_with_tools(formatter, agent.msgs)
            if plan is None:
                event("refused")
                return
            refusals = agent.server.get_refusals(plan.request)
            assert not refusals, (target, policy, strategy, refusals, plan.cut)
            assert not check_request(provider, plan.request)
            if plan.cut:
                event("cut")
            if adopts == "always" or (adopts == "at times" and round_.adopt):
                agent.msgs = list(plan.history)
            agent.add_reply(plan.request, round_)

    run_async(run)


async def try_plan_with_tools(formatter: Any, msgs: Sequence[Msg]) -> Plan | None:
    try:
        return cast("Plan", await formatter.plan(msgs, tools=[LOOK]))
    except BudgetError:
        return None


@each_case(
    "fault", ["an earlier message", "the system prompt", "a missing block", "a block that was removed before"]
)
def test_the_simulated_server_refuses_changed_requests(fault: str) -> None:
    agent = Agent("anthropic", digests=False)
    free = load_provider("anthropic").chat_formatter("claude-opus-4-1")
    for _ in range(3):
        request = run_async(lambda: try_plan_with_tools(free, agent.msgs)).request
        assert not agent.server.get_refusals(request)
        agent.add_reply(request, Round(1, 1, 5, (), adopt=False))
    request = run_async(lambda: try_plan_with_tools(free, agent.msgs)).request
    assert not agent.server.get_refusals(request)
    turns = request["messages"]
    if fault == "an earlier message":
        turns[0]["content"] = "Something else."
    elif fault == "the system prompt":
        request["system"] = "Be verbose."
    elif fault == "a missing block":
        turns[3]["content"] = turns[3]["content"][1:]
    else:
        without = [
            {**turn, "content": [p for p in turn["content"] if p["type"] != "thinking"]} for turn in turns[:5]
        ]
        agent.server.issue({**request, "messages": without}, ["proof-2-0"])
    assert agent.server.get_refusals(request)
