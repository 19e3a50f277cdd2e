"""Events, files and caches are bounded, and a counter of the caller's is no foreign exception."""

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
from tests.providers import PROVIDERS, user
from tests.providers.calling import create_model

# -- events that do not end -----------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> int:
    """A limit of events that a test can reach."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 10_000)
    return 10_000


ENDLESS: Final = {
    "one line": b"data: aaaaaaaa",
    "lines of one event": b"data: aaaaaaaa\n",
    "returns": b"data: a\r",
    "a body": b'{"a":\n1,',
    "an event and line breaks": b"\n",
}


@pytest.mark.parametrize("kind", ENDLESS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_event_without_an_end_is_an_error(provider: str, kind: str, small: int) -> None:
    parser = load_provider(provider).parser
    assert parser is not None
    reader = parser()
    if kind == "an event and line breaks":
        reader.feed(b'{"a": 1' if provider == "ollama" else b"{}")
    with pytest.raises(MessageError, match="more than 10,000 bytes"):
        _feed(reader, [ENDLESS[kind]] * small)


def _feed(reader: StreamParserBase, chunks: list[bytes]) -> None:
    for chunk in chunks:
        reader.feed(chunk)


def test_many_events_that_end_are_no_long_event(small: int) -> None:
    events = EventBytes()
    for _ in range(small):
        assert events.feed(b"data: {}\n\n") == [b"{}"]
        events.feed(b": a comment\n\n")


@pytest.mark.anyio
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_it_is_an_error_of_the_call_and_what_came_is_kept(provider: str, small: int) -> None:
    with LoopbackServer("Word. " * small) as server:
        async with create_model(provider, server) as model:
            assert (await model.generate([user("Speak.")])).text == "Word. " * small


def _frame(size: int, payload: bytes) -> bytes:
    head = struct.pack(">II", size, 0)
    message = head + struct.pack(">I", zlib.crc32(head)) + payload
    return message + struct.pack(">I", zlib.crc32(message))


@pytest.mark.anyio
@pytest.mark.parametrize("size", [0, 1, 15, 2**31, 2**32 - 1])
async def test_the_size_of_a_frame_of_bedrock_is_bounded(size: int) -> None:
    pytest.importorskip("botocore")
    with pytest.raises(
        MessageError, match=f"expected event stream messages of 16 to 26,214,400 bytes, got {size:,}"
    ):
        await _events_in([_frame(size, b"a" * 100)])


@pytest.mark.anyio
@pytest.mark.parametrize("headers", [b"\x05a", b"\x01\xff\x07\x00\x01a", b"\x01a\x63"])
async def test_a_broken_message_of_bedrock_is_an_error_of_ours(headers: bytes) -> None:
    pytest.importorskip("botocore")
    with pytest.raises(MessageError, match="unreadable message"):
        await _events_in([_message(headers, b"{}")])
    with pytest.raises(MessageError, match="unreadable message"):
        await _events_in([_message(EVENT, b'{"bytes": "a"}')])


EVENT: Final = b"\x0d:message-type\x07\x00\x05event"


def _message(headers: bytes, payload: bytes) -> bytes:
    head = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    body = head + struct.pack(">I", zlib.crc32(head)) + headers + payload
    return body + struct.pack(">I", zlib.crc32(body))


async def _events_in(chunks: list[bytes]) -> list[dict[str, Any]]:
    from agentkit_anthropic._bedrock_events import bedrock_events

    async def pieces() -> AsyncGenerator[bytes]:
        for chunk in chunks:
            yield chunk

    async with aclosing(pieces()) as opened, aclosing(bedrock_events(opened)) as events:
        return [event async for event in events]


@pytest.mark.anyio
@pytest.mark.parametrize("cut", [1, 7, 4_000, 100_000])
async def test_frames_of_bedrock_are_read_however_they_are_cut(cut: int) -> None:
    pytest.importorskip("botocore")
    events = [
        base64.b64encode(json.dumps({"type": "ping", "n": number}).encode()).decode() for number in range(50)
    ]
    whole = b"".join(_message(EVENT, json.dumps({"bytes": event}).encode()) for event in events)
    chunks = [whole[at : at + cut] for at in range(0, len(whole), cut)]
    assert [event["n"] for event in await _events_in(chunks)] == [*range(50)]


# -- arguments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_whole"),
    [
        ("", False), ("{}", True), ("{} \n", True), (' {"a": "}"}', True), ('{"a": "\\"}', False), ("[]", False),
        ('{"a": [1, {"b": "\\\\"}]}', True), ("{}{}", False), ('{"a": 1', False), ("{]", False), ("}", False),
        ('{"a": nope}', False), ('"{}"', False), ("{} x", False), ('{"\ud800": 1}', True),
    ],
)  # fmt: skip
def test_whether_arguments_are_a_whole_object_does_not_depend_on_their_pieces(text: str, is_whole: bool) -> None:
    for size in (1, 2, 3, 100):
        for asks in (True, False):
            arguments = ArgumentBuffer()
            for at in range(0, len(text), size):
                arguments.add(text[at : at + size])
                if asks:
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
    "agentkit.media.downloading._load_client",
    "agentkit.media.downloading.tls_context",
    "agentkit.models.registry.load_provider",  # by the name of an installed provider: errors are not kept
    "agentkit.media.resizing.can_resize",
    "agentkit_openai.compatible._parser",  # by the row of a vendor
}
"""Caches that take no argument, or one of a closed set."""


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


def test_every_cache_that_data_may_fill_has_a_bound() -> None:
    unbounded: set[str] = set()
    for module in _modules():
        holders = [module, *(item for item in vars(module).values() if isinstance(item, type))]
        for holder in holders:
            for name, item in [*vars(holder).items()]:
                parameters = getattr(item, "cache_parameters", None)
                if parameters is not None and parameters()["maxsize"] is None:
                    unbounded.add(f"{item.__module__}.{name}")
    assert unbounded == UNBOUNDED


def test_any_number_of_model_names_is_forgotten_again() -> None:
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
@pytest.mark.parametrize("counter", [SynchronousCounter(), WordyCounter()], ids=["synchronous", "wordy"])
async def test_a_counter_that_is_not_asynchronous_or_gives_no_number_is_an_error_of_the_option(
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


def test_a_remote_method_that_is_not_asynchronous_is_an_error_of_the_option() -> None:
    assert UsageAnchoredCounter()  # its local counter is checked where it is made
    with pytest.raises(OptionError, match="local"):
        UsageAnchoredCounter(cast("Any", SynchronousCounter()))
