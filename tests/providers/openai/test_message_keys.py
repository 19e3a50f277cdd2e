"""Keys of logged messages are in the request, or the ledger reports that they are omitted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest

from agentkit import (
    Plan,
    TextBlock,
    dump_messages,
    load_messages,
    load_native,
    load_provider,
)
from agentkit.provider_kit import get_state_fields
from agentkit_openai import OpenAIChatFormatter
from tests.cases import each_case
from tests.providers import MESSAGE_PROVIDERS

PROVIDERS: Final = MESSAGE_PROVIDERS
CHAT_PROVIDERS: Final = [
    name for name in PROVIDERS if issubclass(load_provider(name).chat_formatter, OpenAIChatFormatter)
]
CLOSED: Final = ("compatible", "mistral")  # these APIs refuse requests with unknown keys

_CALL: Final = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
_IMAGE: Final = {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}

MESSAGES: Final[list[dict[str, Any]]] = [
    {"role": "system", "content": "Be kind.", "system_key": 1},
    {"role": "user", "content": "Hi.", "user_key": ["a"]},
    {"role": "assistant", "content": None, "tool_calls": [_CALL], "call_key": {"b": 2}},
    {"role": "tool", "tool_call_id": "c1", "content": "A cat.", "result_key": 3},
    {"role": "user", "content": [_IMAGE], "image_key": {}},
    {"role": "assistant", "content": "It is", "text_key": False},
]
"""Log with an unknown key in each message."""

UNKNOWN_KEYS: Final = ("system_key", "user_key", "call_key", "result_key", "image_key", "text_key")

CONTINUATION_KEYS: Final = {"dashscope-compatible": "partial", "deepseek": "prefix", "mistral": "prefix"}
"""Keys that ask a vendor to continue the last message, by provider."""


def lower(source: str, target: str, log: list[dict[str, Any]], *, multi: bool = False) -> Plan:
    provider = load_provider(target)
    formatter = provider.multi_agent_formatter if multi else provider.chat_formatter
    return formatter(on_loss="describe").lower(load_native(source, log))


def list_reported_keys(plan: Plan, keys: tuple[str, ...]) -> set[str]:
    """Returns the keys that the ledger reports as omitted, alone or together with their blocks."""
    reported: set[str] = set()
    for entry in plan.ledger.entries:
        key = keys[int(entry.place.removeprefix("msgs[").partition("]")[0])]
        if entry.lost or f"message.{key} omitted: the API has no field for it" in entry.details:
            reported.add(key)
    return reported


def list_keys(value: object) -> Iterator[str]:
    """Yields the keys of all dicts in a JSON value."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield key
            yield from list_keys(item)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from list_keys(item)


@each_case("target", PROVIDERS)
@each_case("source", CHAT_PROVIDERS)
def test_an_unknown_key_is_in_the_request_or_reported(source: str, target: str) -> None:
    for multi in (False, True):
        plan = lower(source, target, MESSAGES, multi=multi)
        sent = {*list_keys(plan.request)} & {*UNKNOWN_KEYS}
        assert sent == {*UNKNOWN_KEYS} - list_reported_keys(plan, UNKNOWN_KEYS)


@each_case("provider", CHAT_PROVIDERS)
def test_only_apis_with_closed_keys_get_no_unknown_key(provider: str) -> None:
    plan = lower(provider, provider, MESSAGES)
    assert bool({*list_keys(plan.request)} & {*UNKNOWN_KEYS}) is (provider not in CLOSED)


@each_case("provider", CHAT_PROVIDERS)
@each_case("key", ["partial", "prefix"])
def test_a_key_of_the_last_message_is_in_the_request_or_reported(provider: str, key: str) -> None:
    plan = lower(provider, provider, [MESSAGES[1], {"role": "assistant", "content": "It is", key: True}])
    is_reported = any(f"{key} omitted" in detail for detail in plan.ledger.entries[-1].details)
    assert (key in list_keys(plan.request)) is not is_reported


@pytest.mark.parametrize(("provider", "key"), CONTINUATION_KEYS.items())
def test_a_key_that_asks_for_more_text_is_in_the_last_message_alone(provider: str, key: str) -> None:
    log = [MESSAGES[1], {"role": "assistant", "content": "It is", key: True}]
    assert lower(provider, provider, log).request["messages"][-1].items() >= log[-1].items()
    assert key not in list_keys(lower(provider, provider, [*log, MESSAGES[1]]).request)


@each_case("provider", CHAT_PROVIDERS)
def test_a_developer_message_has_its_role_or_the_role_is_reported(provider: str) -> None:
    plan = lower(provider, provider, [{"role": "developer", "content": "Be brief."}, MESSAGES[1]])
    is_reported = any("role omitted" in detail for detail in plan.ledger.entries[0].details)
    assert (plan.request["messages"][0]["role"] == "developer") is not is_reported


DEVELOPER: Final[list[dict[str, Any]]] = [{"role": "developer", "content": "Be brief."}, MESSAGES[1]]
PARTIAL: Final[list[dict[str, Any]]] = [MESSAGES[1], {"role": "assistant", "content": "It is", "partial": True}]
PREFIX: Final[list[dict[str, Any]]] = [MESSAGES[1], {"role": "assistant", "content": "It is", "prefix": True}]

LOGS_OF_0_3: Final[list[tuple[str, list[dict[str, Any]], int, str]]] = [
    # provider, log, and the message and the key that agentkit 0.3.0 stored without a prefix
    ("openai", DEVELOPER, 0, "role"),
    ("openai-responses", DEVELOPER, 0, "role"),
    ("dashscope", PARTIAL, 1, "partial"),
    ("dashscope-compatible", PARTIAL, 1, "partial"),
    ("deepseek", PREFIX, 1, "prefix"),
]


@each_case("path", ["text", "multimodal"])
@each_case(("provider", "log", "index", "key"), LOGS_OF_0_3)
def test_messages_stored_by_0_3_give_the_same_request(
    provider: str, log: list[dict[str, Any]], index: int, key: str, path: str
) -> None:
    log = [{name: item for name, item in message.items() if name != "user_key"} for message in log]
    msgs = load_native(provider, {"input": log} if provider == "openai-responses" else log)
    (block,) = msgs[index].blocks
    assert isinstance(block, TextBlock)
    assert [*get_state_fields(block.state)] == [f"message.{key}"]
    stored = dump_messages(msgs)
    old = json.loads(json.dumps(stored).replace(f"message.{key}", key))
    assert old != stored
    options: Any = {"path": path} if provider == "dashscope" else {}
    formatter = load_provider(provider).chat_formatter(**options)
    request = formatter.lower(msgs).request
    assert ("developer" if key == "role" else f"'{key}': True") in str(request)
    assert formatter.lower(load_messages(old)).request == request
