"""Fixtures and functions of all tests: both event loops, an echo provider, and short constructors of messages."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final, cast

import pytest

from agentkit import HistoryPolicy, LedgerEntry, Msg, Plan, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.provider_kit import (
    Capabilities,
    FormatterBase,
    LegalConversation,
    MediaCapabilities,
    MediaRule,
    ModelFact,
    OptionLayout,
    Request,
    RequestSpec,
    ThinkingCapabilities,
    TurnCapabilities,
    WireLayout,
    copy_json,
)

AnyMsg: Any = Msg
"""`Msg` without type checks, for invalid arguments."""

WEB: Final = frozenset({"http", "https"})
ANY: Final = MediaRule(schemes=WEB)

ECHO: Final = Capabilities(
    name="Echo",
    issuer="echo",
    turns=TurnCapabilities(
        speaker_names=True,
    ),
    media=MediaCapabilities(
        image=ANY,
        audio=ANY,
        video=ANY,
        document=ANY,
        result_kinds=frozenset({"image", "audio", "video", "document"}),
    ),
    thinking=ThinkingCapabilities(mode="text"),
    layout=WireLayout(
        media={"source": "image"},
        result_labels=frozenset({("type", "tool_result")}),
        options=OptionLayout(outputs=("schema",)),
    ),
)
"""Capabilities of a target that accepts all content. Each test changes the capabilities that it is about."""


class EchoFormatter(FormatterBase):
    """Formatter whose requests are stored messages, so that a test sees the messages that `convert` receives."""

    base = ECHO

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        request: Request = {"messages": [echo_json(msg) for msg in (*legal.system.msgs, *legal.turns.msgs)]}
        if task.tools:
            request["tools"] = [
                {"name": tool.name, "description": tool.description, "parameters": copy_json(tool.parameters)}
                for tool in task.tools
            ]
        if task.tool_choice:
            request["tool_choice"] = task.tool_choice.name or task.tool_choice.mode
        if task.output and task.capabilities.output == "schema":
            request["schema"] = copy_json(task.output.schema)
        return request


def echo_json(msg: Msg) -> dict[str, Any]:
    """Returns a message as the echo formatter writes it: its role, name and content."""
    stored = msg.to_dict()
    return {key: stored[key] for key in ("role", "name", "content")}


def target(*facts: ModelFact, **changes: Any) -> type[EchoFormatter]:
    """Returns an echo formatter with other capabilities: `target(media__image=None)` changes `media.image`."""

    class Target(EchoFormatter):
        base = ECHO.override({name.replace("__", "."): value for name, value in changes.items()})

    Target.facts = facts
    return Target


def lower(
    msgs: Sequence[Msg], history: HistoryPolicy | None = None, on_loss: Any = "describe", **changes: Any
) -> Plan:
    """Returns the plan of a request for an echo formatter with other capabilities."""
    return target(**changes)(history=history, on_loss=on_loss).lower(msgs)


def legalize(msgs: Sequence[Msg], history: HistoryPolicy | None = None, **changes: Any) -> LegalConversation:
    """Returns the conversation that `convert` of an echo formatter with other capabilities receives."""
    conversations: list[LegalConversation] = []

    class Formatter(EchoFormatter):
        base = target(**changes).base

        def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
            conversations.append(legal)
            return super().convert(legal, task)

    Formatter(history=history).lower(msgs)
    return conversations[0]


def get_turns(plan: Plan) -> list[dict[str, Any]]:
    """Returns the messages of a request of the echo formatter."""
    return cast("list[dict[str, Any]]", plan.request["messages"])


def turn_lines(plan: Plan) -> list[str]:
    """Returns each message of a request as one line: `role name: content`, with blocks joined by ` | `."""
    return [_line(msg) for msg in get_turns(plan)]


def msg_lines(msgs: Sequence[Msg]) -> list[str]:
    """Returns each message as one line, in the format of `turn_lines`."""
    return [_line(echo_json(msg)) for msg in msgs]


def _line(msg: dict[str, Any]) -> str:
    return f"{msg['role']} {msg['name']}: {_brief(msg['content'])}"


def _brief(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " | ".join(_brief_block(block) for block in content)


def _brief_block(block: dict[str, Any]) -> str:
    kind = block["type"]
    if kind in ("text", "thinking"):
        return str(block[kind])
    if kind == "tool_use":
        return f"call {block['id']}"
    if kind == "tool_result":
        return f"result {block['id']}={_brief(block.get('output', ''))}"
    return f"<{kind}>"


def call(*ids: str, name: str = "Friday", tool: str = "search", pinned: bool = False) -> Msg:
    """Returns an assistant message with tool calls."""
    return Msg(name, tuple(ToolUseBlock(id, tool, {"q": id}) for id in ids), "assistant", pinned=pinned)


def result(*ids: str, output: str = "found", pinned: bool = False) -> Msg:
    """Returns a message with tool results."""
    return Msg("system", tuple(ToolResultBlock(id, "search", output) for id in ids), "system", pinned=pinned)


def text_msg(name: str, text: str, role: Any = "user", pinned: bool = False) -> Msg:
    """Returns a message with one text."""
    return Msg(name, text, role, pinned=pinned)


def texts_msg(name: str, *texts: str, role: Any = "user") -> Msg:
    """Returns a message with several texts."""
    return Msg(name, tuple(map(TextBlock, texts)), role)


def dispositions(plan: Plan) -> dict[str, str]:
    """Returns the disposition of each block by its place."""
    return {entry.place: entry.disposition.word for entry in plan.ledger.entries}


def ledger_lines(plan: Plan) -> list[str]:
    """Returns each entry of the ledger as one line: `place disposition: reason; details`.

    The place has only its indexes: `1.0` means `msgs[1].content[0]`. A `!` follows the disposition of a loss.
    """
    return [_ledger_line(entry) for entry in plan.ledger.entries]


def _ledger_line(entry: LedgerEntry) -> str:
    place = ".".join(re.findall(r"\d+", entry.place))
    return f"{place} {entry.disposition}{'!' * entry.lost}: {'; '.join((entry.reason, *entry.details))}"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Runs an async test on both event loops."""
    return str(request.param)


_MARKED_FOLDERS: Final = {"benchmarks": "benchmark", "conformance": "conformance"}
_ONE_LOOP_FOLDERS: Final = frozenset(
    {"comparison", "documents", "formatting", "legalize", "prompts", "properties", "providers"}
)
"""Folders whose tests on the second event loop are part of the full matrix (marker `sdk`)."""
_SDK_MODULES: Final = frozenset({"test_clouds", "test_credentials"})
_VENDORS: Final = frozenset({"dashscope-compatible", "deepseek", "vllm"})
"""Providers that are rows of facts on the Chat Completions endpoint."""
_VENDOR_MODULES: Final = frozenset(
    {"test_calls", "test_clients", "test_errors", "test_parameters", "test_streams", "test_through_sdks"}
)
"""Modules of provider tests whose tests of these vendors repeat those of OpenAI (marker `sdk`)."""
_TESTS: Final = Path(__file__).parent

os.environ["SSL_CERT_FILE"] = str(_TESTS / "certificate.pem")
"""Tests call no public server. Each SDK client then reads one certificate, and not all public ones, in 50 ms."""


@cache
def _folder(path: Path) -> str:
    """Returns the first part of a test file's path below `tests`: a folder or the file itself."""
    return path.relative_to(_TESTS).parts[0]


@cache
def _path_markers(path: Path) -> tuple[str, ...]:
    """Returns the markers of all tests in a file."""
    folder = _folder(path)
    markers = (_MARKED_FOLDERS.get(folder), "sdk" if path.stem in _SDK_MODULES else None)
    return tuple(marker for marker in markers if marker)


def _markers(item: pytest.Item) -> Iterator[str]:
    """Yields the markers of a test: by its folder, its module, its event loop, and its provider."""
    yield from _path_markers(item.path)
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    is_second_loop = parameters.get("anyio_backend") == "trio" and _folder(item.path) in _ONE_LOOP_FOLDERS
    is_repeated = _folder(item.path) == "providers" and item.path.stem in _VENDOR_MODULES
    is_vendor = is_repeated and _is_about_vendor(parameters.values())
    if is_second_loop or is_vendor:
        yield "sdk"


def _is_about_vendor(parameters: Iterable[object]) -> bool:
    return any(isinstance(value, str) and value in _VENDORS for value in parameters)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Marks tests, and refuses test ids with a memory address.

    Every process of a parallel run must collect the same ids.
    """
    for item in items:
        for marker in _markers(item):
            item.add_marker(marker)
    changing = [item.nodeid for item in items if re.search(r" at 0x[0-9a-f]{6,}", item.nodeid)]
    if changing:
        raise pytest.UsageError(f"test id with a memory address: {changing[0]}. Pass ids= to parametrize.")


def pytest_collection_finish() -> None:
    """Makes garbage collection rare, and exempts collected tests and imported packages: a pass takes 0.3 s."""
    import_module("hypothesis")  # asks the garbage collector for referrers when it is imported
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
