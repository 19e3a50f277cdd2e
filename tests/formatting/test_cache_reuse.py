"""Tests of costs that can be counted: reusable prompt prefixes, weighed messages, and bytes of memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentkit import OldestFirst, OldestFirstInSteps, load_provider
from agentkit.provider_kit import FormatterBase
from agentkit_anthropic import AnthropicChatFormatter, AnthropicMultiAgentFormatter
from agentkit_openai import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from tests.benchmarks.caching import replay_group_chat, replay_react_loop, split_into_blocks
from tests.benchmarks.concurrent_formatting import measure_memory
from tests.benchmarks.cutting import count_weighings
from tests.benchmarks.histories import as_msgs, build_mixed_chat
from tests.benchmarks.memory import measure_overhead
from tests.providers import MESSAGE_PROVIDERS

KINDS = (OpenAIChatFormatter, AnthropicChatFormatter, OpenAIMultiAgentFormatter, AnthropicMultiAgentFormatter)


@pytest.mark.parametrize(
    "kind", [OpenAIChatFormatter, pytest.param(AnthropicMultiAgentFormatter, marks=pytest.mark.slow)]
)
def test_most_of_a_cut_prompt_is_the_prefix_of_the_previous_prompt(
    kind: Callable[..., FormatterBase],
) -> None:
    # The budget holds 100 of 250 steps.
    reuse = replay_react_loop(kind, 250, {"stepped": OldestFirstInSteps(), "oldest": OldestFirst()}, share=0.4)
    stepped, oldest = reuse["stepped"].steady(), reuse["oldest"].steady()
    assert min(stepped.by_byte, stepped.by_block) >= 0.94
    assert stepped.context >= 0.87 * oldest.context
    assert stepped.automatic <= 0.21 * oldest.automatic
    assert stepped.explicit <= 0.21 * oldest.explicit


@pytest.mark.parametrize("name", MESSAGE_PROVIDERS)
def test_prompts_of_a_group_chat_without_a_cut_only_grow(name: str) -> None:
    provider = load_provider(name)
    reuse = replay_group_chat(provider, 200)
    assert reuse.by_byte >= 0.99
    if provider.multi_agent_formatter().capabilities().turns.text_joining == "apart":
        assert reuse.by_block >= 0.99


def test_each_message_is_weighed_once() -> None:
    assert count_weighings(60) == 1


def test_a_message_uses_few_bytes_besides_its_strings() -> None:
    assert measure_overhead(as_msgs(build_mixed_chat(500))) <= 300


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_formatted_conversations_use_few_bytes(kind: Callable[..., FormatterBase]) -> None:
    assert measure_memory(kind, 100, 50) <= 300, "with the caches of their formatters"


def test_prompt_cache_blocks_are_in_request_order_and_have_each_byte_once() -> None:
    request = {
        "messages": [
            {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
            {"role": "tool", "content": "c"},
        ],
        "system": "s",
        "tools": [{"name": "t"}, {"name": "u"}],
    }
    assert split_into_blocks(request) == [
        b'{"name":"t"}',
        b'{"name":"u"}',
        b'"s"',
        b'{"role":"user"}{"text":"a"}',
        b'{"text":"b"}',
        b'{"role":"tool"}"c"',
    ]
