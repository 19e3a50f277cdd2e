"""Texts of an adapter and a signature are cached, without the function `observe` of the adapter."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from agentkit.prompts import Adapter, AdapterEvent, ChatAdapter, Example, JSONAdapter, PromptAdapter, Signature
from agentkit.prompts.cached_texts import as_cache_key

QA = Signature("question -> answer: int")
EXAMPLE = Example({"question": "1?"}, {"answer": 1})


class Recorder:
    """Function for `observe`."""

    def __call__(self, event: AdapterEvent) -> None:
        pass


def format_observed(name: str) -> weakref.ref[Recorder]:
    """Formats a request with a new observer, and returns a weak reference to the observer."""
    observe = Recorder()
    adapters: dict[str, Adapter] = {
        "chat": ChatAdapter(observe=observe),
        "fallback": ChatAdapter(fallback=JSONAdapter(observe=observe)),
        "prompt": PromptAdapter(observe=observe),
    }
    adapters[name].format(QA, {"question": "2?"}, examples=[EXAMPLE])
    return weakref.ref(observe)


@pytest.mark.parametrize("name", ["chat", "fallback", "prompt"])
def test_caches_do_not_keep_the_function_of_an_adapter_alive(name: str) -> None:
    reference = format_observed(name)
    gc.collect()
    assert reference() is None


def test_equal_adapters_share_the_texts() -> None:
    class Counted(ChatAdapter):
        def format_task_description(self, signature: Any) -> str:
            calls.append(signature)
            return super().format_task_description(signature)

    calls: list[object] = []
    signature = Signature("question -> answer: int")
    for adapter in (Counted(), Counted(observe=Recorder()), Counted(observe=Recorder())):
        adapter.format(signature, {"question": "2?"})
    assert len(calls) == 1


def test_a_cache_key_is_an_equal_adapter() -> None:
    plain: Adapter = ChatAdapter(fallback=JSONAdapter())
    observed: Adapter = ChatAdapter(fallback=JSONAdapter(observe=print), observe=print)
    assert as_cache_key(plain) is plain
    key = as_cache_key(observed)
    assert key == observed == plain
    assert key.observe is None
    assert key.fallback is not None
    assert key.fallback.observe is None
    assert observed.observe is print
