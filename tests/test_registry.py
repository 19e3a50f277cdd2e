"""Providers are found by name, through entry points."""

from __future__ import annotations

import dataclasses

import pytest

from agentkit import FormatterBase, Provider, ProviderError, available_providers, load_provider
from tests.conftest import EchoFormatter


def test_the_available_providers_are_sorted_names() -> None:
    names = available_providers()
    assert names == sorted(set(names))
    assert "openai" in names


@pytest.mark.parametrize("name", ["nimbus", "", "OpenAI", "openai "])
def test_an_unknown_name_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(ProviderError) as caught:
        load_provider(name)
    assert caught.value.name == name
    assert caught.value.available == tuple(available_providers())
    assert str(caught.value).startswith(f"provider {name!r}: no such provider")


def test_a_provider_is_loaded_once() -> None:
    assert load_provider("openai") is load_provider("openai")


def test_a_provider_is_a_name_and_two_formatters() -> None:
    provider = Provider("echo", EchoFormatter, EchoFormatter)
    assert provider == Provider(name="echo", chat=EchoFormatter, multi_agent=EchoFormatter)
    with pytest.raises(dataclasses.FrozenInstanceError):
        provider.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("name", available_providers())
def test_a_loaded_formatter_needs_no_argument_and_no_sdk(name: str) -> None:
    provider = load_provider(name)
    for formatter in (provider.chat(), provider.multi_agent()):
        assert isinstance(formatter, FormatterBase)
        assert formatter.model is None
        assert formatter.capabilities().target
