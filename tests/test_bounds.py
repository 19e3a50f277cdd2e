"""Limits for events, files and caches, and errors of counters that the caller passes."""

from __future__ import annotations

import base64
import importlib
import json
import os
import pkgutil
import stat
import struct
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

import pytest

import agentkit
from agentkit import (
    Budget,
    ChatModel,
    ImageBlock,
    MessageError,
    Msg,
    OptionError,
    TokenCounterBase,
    UsageAnchoredCounter,
    load_provider,
)
from agentkit.provider_kit import StreamParserBase
from agentkit.replies import sse
from agentkit.replies.arguments import ArgumentBuffer
from agentkit.replies.sse import EventBytes
from agentkit.testing import LoopbackServer
from tests.cases import each_case
from tests.providers import PROVIDERS, user
from tests.providers.calling import create_model

# -- events that do not end -----------------------------------------------------------------------------------


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """Small limit for the bytes of an event, which a test can exceed."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 10_000)
    return 10_000


ENDLESS_EVENTS: Final = {
    "one line": b"data: aaaaaaaa",
    "lines of one event": b"data: aaaaaaaa\n",
    "carriage returns": b"data: a\r",
    "one JSON value": b'{"a":\n1,',
    "an event and line breaks": b"\n",
}


@each_case("kind", [*ENDLESS_EVENTS])
@each_case("provider", PROVIDERS)
def test_an_event_without_an_end_is_an_error(provider: str, kind: str, small_limit: int) -> None:
    parser = load_provider(provider).parser
    assert parser is not None
    reader = parser()
    if kind == "an event and line breaks":
        reader.feed(b'{"a": 1' if provider == "ollama" else b"{}")
    with pytest.raises(MessageError, match="more than 10,000 bytes"):
        _feed(reader, [ENDLESS_EVENTS[kind]] * small_limit)


def _feed(reader: StreamParserBase, chunks: list[bytes]) -> None:
    for chunk in chunks:
        reader.feed(chunk)


def test_the_limit_applies_to_each_event_and_not_to_the_stream(small_limit: int) -> None:
    events = EventBytes()
    for _ in range(small_limit):
        assert events.feed(b"data: {}\n\n") == [b"{}"]
        events.feed(b": a comment\n\n")


@pytest.mark.anyio
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_reply_of_many_small_events_may_exceed_the_limit(provider: str, small_limit: int) -> None:
    with LoopbackServer("Word. " * small_limit) as server:
        async with create_model(provider, server) as model:
            assert (await model.generate([user("Speak.")])).text == "Word. " * small_limit


def _frame(size: int, payload: bytes) -> bytes:
    head = struct.pack(">II", size, 0)
    message = head + struct.pack(">I", zlib.crc32(head)) + payload
    return message + struct.pack(">I", zlib.crc32(message))


@pytest.mark.anyio
@each_case("size", [0, 1, 15, 2**31, 2**32 - 1])
async def test_a_message_of_bedrock_with_an_invalid_size_is_an_error(size: int) -> None:
    pytest.importorskip("botocore")
    with pytest.raises(
        MessageError, match=f"expected event stream messages of 16 to 26,214,400 bytes, got {size:,} bytes"
    ):
        await _read_events([_frame(size, b"a" * 100)])


@pytest.mark.anyio
@each_case("headers", [b"\x05a", b"\x01\xff\x07\x00\x01a", b"\x01a\x63"])
async def test_a_broken_message_of_bedrock_is_a_message_error(headers: bytes) -> None:
    pytest.importorskip("botocore")
    with pytest.raises(MessageError, match="unreadable message"):
        await _read_events([_message(headers, b"{}")])
    with pytest.raises(MessageError, match="unreadable message"):
        await _read_events([_message(EVENT, b'{"bytes": "a"}')])


EVENT: Final = b"\x0d:message-type\x07\x00\x05event"


def _message(headers: bytes, payload: bytes) -> bytes:
    head = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    body = head + struct.pack(">I", zlib.crc32(head)) + headers + payload
    return body + struct.pack(">I", zlib.crc32(body))


async def _read_events(chunks: list[bytes]) -> list[dict[str, Any]]:
    from agentkit_anthropic._bedrock_events import bedrock_events

    async def pieces() -> AsyncGenerator[bytes]:
        for chunk in chunks:
            yield chunk

    async with aclosing(pieces()) as opened, aclosing(bedrock_events(opened)) as events:
        return [event async for event in events]


@pytest.mark.anyio
@pytest.mark.parametrize("cut", [1, 7, 4_000, 100_000])
async def test_messages_of_bedrock_are_read_from_chunks_of_any_size(cut: int) -> None:
    pytest.importorskip("botocore")
    events = [
        base64.b64encode(json.dumps({"type": "ping", "n": number}).encode()).decode() for number in range(50)
    ]
    whole = b"".join(_message(EVENT, json.dumps({"bytes": event}).encode()) for event in events)
    chunks = [whole[at : at + cut] for at in range(0, len(whole), cut)]
    assert [event["n"] for event in await _read_events(chunks)] == [*range(50)]


# -- arguments ------------------------------------------------------------------------------------------------


@each_case(
    ("text", "is_whole"),
    [
        ("", False), ("{}", True), ("{} \n", True), (' {"a": "}"}', True), ('{"a": "\\"}', False), ("[]", False),
        ('{"a": [1, {"b": "\\\\"}]}', True), ("{}{}", False), ('{"a": 1', False), ("{]", False), ("}", False),
        ('{"a": nope}', False), ('"{}"', False), ("{} x", False), ('{"\ud800": 1}', True),
    ],
)  # fmt: skip
def test_complete_arguments_are_recognized_in_pieces_of_any_size(text: str, is_whole: bool) -> None:
    for size in (1, 2, 3, 100):
        for checks_each_piece in (True, False):
            arguments = ArgumentBuffer()
            for at in range(0, len(text), size):
                arguments.add(text[at : at + size])
                if checks_each_piece:
                    _ = arguments.is_object
                if at % 2:
                    assert arguments.text == text[: at + size]
            assert arguments.is_object is is_whole


# -- files ----------------------------------------------------------------------------------------------------


def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(MessageError, match="cannot be read"):
            ImageBlock.from_path(path, "image/png")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentkit.messages.media_blocks.MAX_FILE_BYTES", 1_000)
    large = tmp_path / "large.png"
    large.write_bytes(b"\x89PNG" + bytes(2_000))
    with pytest.raises(MessageError, match="more than 1,000 bytes"):
        ImageBlock.from_path(large)
    large.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(500))
    assert ImageBlock.from_path(large).source.type == "base64"


# -- caches ---------------------------------------------------------------------------------------------------

UNBOUNDED: Final = {
    "agentkit.chat_templates.builtin_templates._read",  # one entry for each built-in template
    "agentkit.jinja_environments.chat_rendering._get_environment",
    "agentkit.jinja_environments.yaml_texts._get_dumper_class",
    "agentkit.prompts.signature_parsing.standard_types",
    "agentkit.media.safe_http._load_client",
    "agentkit.media.safe_http.tls_context",
    "agentkit.models.registry.load_provider",  # one entry for each installed provider; errors are not cached
    "agentkit.media.resizing.can_resize",
    "agentkit_openai.compatible._parser",  # one entry for each vendor
}
"""Caches of functions without arguments, or whose arguments have a fixed set of values."""


def _modules() -> Iterator[ModuleType]:
    packages = [agentkit, *(importlib.import_module(name) for name in _provider_packages())]
    for package in packages:
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "__main__" not in found.name:
                yield importlib.import_module(found.name)


def _provider_packages() -> list[str]:
    root = Path(agentkit.__file__).parents[1] / "providers"
    return sorted(path.name for path in root.iterdir() if (path / "__init__.py").exists())


def test_every_cache_that_data_can_fill_has_a_limit() -> None:
    unbounded: set[str] = set()
    for module in _modules():
        holders = [module, *(item for item in vars(module).values() if isinstance(item, type))]
        for holder in holders:
            for name, item in [*vars(holder).items()]:
                parameters = getattr(item, "cache_parameters", None)
                if parameters is not None and parameters()["maxsize"] is None:
                    unbounded.add(f"{item.__module__}.{name}")
    assert unbounded == UNBOUNDED


def test_the_cache_of_capabilities_stays_small_with_many_model_names() -> None:
    from agentkit.formatting import formatter as formatting

    formatter = load_provider("openai").chat_formatter()
    for number in range(2_000):
        formatter.capabilities(f"model-{number}")
    assert formatting._find_capabilities.cache_info().currsize <= 512  # pyright: ignore[reportPrivateUsage]


# -- counters -------------------------------------------------------------------------------------------------


class SynchronousCounter(TokenCounterBase):
    def count(self, request: Mapping[str, Any]) -> int:  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
        return 1


class WordyCounter(TokenCounterBase):
    async def count(self, request: Mapping[str, Any]) -> int:
        return cast("int", "many")


@pytest.mark.anyio
@each_case("counter", {"synchronous": SynchronousCounter(), "wordy": WordyCounter()})
async def test_a_counter_that_is_synchronous_or_returns_no_number_is_an_error_of_the_option(
    counter: TokenCounterBase,
) -> None:
    budget = Budget(1_000, counter=counter)
    msgs = [Msg("Bob", "Hello.", "user")]
    with pytest.raises(OptionError, match=r"budget\.counter"):
        await load_provider("openai").chat_formatter(budget=budget).plan(msgs)
    model = ChatModel("openai:gpt-6", budget=budget)
    plan = await load_provider("openai").chat_formatter().plan(msgs)
    with pytest.raises(OptionError, match=r"budget\.counter"):
        await model.count(plan)


def test_a_local_counter_of_another_type_is_an_error_of_the_option() -> None:
    assert UsageAnchoredCounter()  # without arguments, the default local counter is used
    with pytest.raises(OptionError, match="local"):
        UsageAnchoredCounter(cast("Any", SynchronousCounter()))
