"""Tests of the position of a cut: as few units as possible are dropped with every counter."""

from collections.abc import Mapping
from random import Random
from typing import Any

import anyio
import pytest

from agentkit import (
    Budget,
    CharacterTokenCounter,
    Msg,
    Plan,
    TokenCounterBase,
    ToolResultBlock,
    ToolUseBlock,
    load_provider,
)
from tests.providers import MESSAGE_PROVIDERS

ESTIMATE = CharacterTokenCounter()


class Remote(TokenCounterBase):
    """Remote counter with the numbers of the estimate by characters."""

    def __init__(self) -> None:
        self.asked = 0

    needs_layout = True

    async def count(self, request: Mapping[str, Any], provider: Any = None) -> int:
        self.asked += 1
        return ESTIMATE.measure(request, provider)


def history(random: Random, units: int) -> list[Msg]:
    msgs = [Msg("system", "You are Friday.", "system")]
    for number in range(units):
        text = "word " * random.randint(1, 60)
        if random.random() < 0.4:
            call = ToolUseBlock(f"c{number}", "look", {"at": text})
            msgs.append(Msg("Friday", [call], "assistant"))
            msgs.append(Msg("system", [ToolResultBlock(call.id, "look", text)], "system"))
        else:
            msgs.append(Msg(random.choice(["Bob", "Alice"]), text, "user"))
    return msgs


def create_plan(name: str, multi: bool, limit: int, counter: TokenCounterBase, msgs: list[Msg]) -> Plan:
    provider = load_provider(name)
    formatter = (provider.multi_agent_formatter if multi else provider.chat_formatter)(
        budget=Budget(limit, counter)
    )
    return anyio.run(formatter.plan, msgs)


@pytest.mark.parametrize("multi", [False, True], ids=["chat", "multi-agent"])
@pytest.mark.parametrize("name", MESSAGE_PROVIDERS)
def test_weights_only_start_the_search_for_the_cut(name: str, multi: bool) -> None:
    random = Random(7)
    for _ in range(6):
        msgs = history(random, 20)
        limit = random.randint(250, 900)
        weighed, counted = (
            create_plan(name, multi, limit, token_counter, msgs)
            for token_counter in (CharacterTokenCounter(), Remote())
        )
        assert weighed.history == counted.history
        assert (weighed.tokens or 0) <= limit


def test_a_counter_without_weights_is_called_few_times() -> None:
    counter = Remote()
    create_plan("openai", False, 4_000, counter, history(Random(3), 500))
    assert counter.asked <= 12
