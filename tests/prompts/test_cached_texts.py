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


def test_equal_adapters_share_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(adapter: ChatAdapter, signature: Any) -> str:
        calls.append(signature)
        return "Answer."

    calls: list[object] = []
    monkeypatch.setattr(ChatAdapter, "format_task_description", describe)
    signature = Signature("question -> answer: int")
    for adapter in (ChatAdapter(), ChatAdapter(observe=Recorder()), ChatAdapter(observe=Recorder())):
        adapter.format(signature, {"question": "2?"})
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("first", "second"), [({"n": 1}, {"n": True}), ({"n": {"a": 1, "b": 2}}, {"n": {"b": 2, "a": 1}})]
)
def test_equal_params_of_a_prompt_adapter_write_their_own_texts(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    def write(params: dict[str, Any]) -> str:
        adapter = PromptAdapter(user="{{ params.n | json }}", params=params)
        return adapter.format(QA, {"question": "2?"}, examples=[example])[1].text

    example = Example({"question": "1?"}, {"answer": 1})
    assert first == second
    assert write(first) != write(second)


def test_equal_adapters_of_a_subclass_write_their_own_texts() -> None:
    class Localized(ChatAdapter):
        def __init__(self, language: str) -> None:
            super().__init__()
            object.__setattr__(self, "language", language)

        def format_task_description(self, signature: Any) -> str:
            return f"Answer in {vars(self)['language']}."

        def format_assistant_message_content(self, *args: Any, **options: Any) -> str:
            return str(vars(self)["language"])

    french, german = (
        Localized(language).format(QA, {"question": "2?"}, examples=[EXAMPLE]) for language in ("French", "German")
    )
    assert french[0].text.endswith("French.")
    assert german[0].text.endswith("German.")
    assert [french[2].text, german[2].text] == ["French", "German"]


def test_a_cache_key_is_an_equal_adapter() -> None:
    plain: Adapter = ChatAdapter(fallback=JSONAdapter())
    observed: Adapter = ChatAdapter(fallback=JSONAdapter(observe=print), observe=print)
    assert as_cache_key(plain) is plain
    key = as_cache_key(observed)
    assert key is not None
    assert key == observed == plain
    assert key.observe is None
    assert key.fallback is not None
    assert key.fallback.observe is None
    assert observed.observe is print


def test_an_adapter_of_another_class_has_no_cache_key() -> None:
    class Derived(ChatAdapter):
        pass

    assert as_cache_key(Derived()) is None
    assert as_cache_key(PromptAdapter()) is None
    key = as_cache_key(ChatAdapter(fallback=PromptAdapter(params={"n": [1]})))
    assert key == ChatAdapter()
