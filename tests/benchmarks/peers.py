"""Other libraries to compare agentkit with. Libraries that cannot be imported are skipped, with a note.

Libraries are imported by name, so that neither type checkers nor tests need them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from logging import CRITICAL, getLogger
from typing import Any, TypeVar, cast

from tests.benchmarks.histories import PlainCall, PlainMsg, PlainResult, PlainText

__all__ = [
    "Peer",
    "Cutter",
    "as_agentscope_messages",
    "load_conversions",
    "run_without_loop",
    "as_langchain_messages",
    "finish_background_work",
    "load_installed",
    "as_openai_dicts",
    "as_pydantic_ai_messages",
    "estimate_tokens",
    "run_async",
    "load_cutters",
]


_Loaded = TypeVar("_Loaded")
_NAMES = {"langchain": "LangChain", "pydantic": "pydantic-ai", "agentscope": "AgentScope 1"}

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # litellm otherwise downloads prices


@dataclass(frozen=True, slots=True)
class Peer:
    """Conversion of one library to native messages, and the floor to compare it with."""

    name: str
    floor: str
    prepare: Callable[[Sequence[PlainMsg]], Any]
    run: Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cut of one library to a number of estimated tokens, and the conversion of the remaining messages."""

    name: str
    prepare: Callable[[Sequence[PlainMsg]], Any]
    cut: Callable[[Any, int], Any]
    convert: Callable[[Any], list[dict[str, Any]]] = list
    is_slow: bool = False  # True if a cut of 1,000 messages takes seconds


def load_conversions(problems: list[str]) -> list[Peer]:
    """Returns the conversions of the installed libraries. Adds import errors to `problems`."""
    return load_installed(
        (
            _load_langchain_openai,
            _load_langchain_anthropic,
            _load_litellm_anthropic,
            _load_pydantic_ai,
            _load_agentscope,
        ),
        problems,
    )


def load_cutters(problems: list[str]) -> list[Cutter]:
    """Returns the cuts of the installed libraries. Adds import errors to `problems`."""
    return load_installed((_load_langchain_cutters, _load_litellm_cutters, _load_agentscope_cutters), problems)


def load_installed(loaders: Sequence[Callable[[], list[_Loaded]]], problems: list[str]) -> list[_Loaded]:
    """Returns the results of all loaders. Adds a loader that fails to `problems`, by the library in its name."""
    items: list[_Loaded] = []
    for load in loaders:
        try:
            items.extend(load())
        except Exception as error:
            library = load.__name__.removeprefix("_load_").split("_")[0]
            name = _NAMES.get(library, library)
            problems.append(f"{name} ({type(error).__name__}: {str(error).splitlines()[0][:90]})")
    return items


def estimate_tokens(part: Any) -> int:
    """Returns the number of tokens in a JSON value: one for every four characters of each string."""
    if isinstance(part, str):
        return len(part) // 4
    if isinstance(part, dict):
        return sum(map(estimate_tokens, cast("dict[str, Any]", part).values()))
    if isinstance(part, list):
        return sum(map(estimate_tokens, cast("list[Any]", part)))
    return 0


def _join_texts(msg: PlainMsg) -> str:
    content = msg.content
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, PlainText))


def _get_calls(msg: PlainMsg) -> list[PlainCall]:
    return [] if isinstance(msg.content, str) else [b for b in msg.content if isinstance(b, PlainCall)]


def _get_results(msg: PlainMsg) -> list[PlainResult]:
    return [] if isinstance(msg.content, str) else [b for b in msg.content if isinstance(b, PlainResult)]


def as_langchain_messages(msgs: Sequence[PlainMsg]) -> list[Any]:
    """Returns a history as messages of LangChain."""
    core = import_module("langchain_core.messages")
    out: list[Any] = []
    for msg in msgs:
        if results := _get_results(msg):
            out.extend(core.ToolMessage(content=r.output, tool_call_id=r.id, name=r.name) for r in results)
        elif msg.role == "assistant":
            calls = [{"name": c.name, "args": c.input, "id": c.id, "type": "tool_call"} for c in _get_calls(msg)]
            out.append(core.AIMessage(content=_join_texts(msg), tool_calls=calls))
        else:
            message_class = core.SystemMessage if msg.role == "system" else core.HumanMessage
            out.append(message_class(content=_join_texts(msg)))
    return out


def as_openai_dicts(msgs: Sequence[PlainMsg]) -> list[dict[str, Any]]:
    """Returns a history as Chat Completions messages, which litellm uses too."""
    from tests.benchmarks.floor import convert_openai

    return convert_openai(msgs, True)


def _load_langchain_openai() -> list[Peer]:
    convert: Any = import_module("langchain_openai.chat_models.base")._convert_message_to_dict
    return [Peer("LangChain OpenAI", "openai", as_langchain_messages, lambda msgs: [convert(m) for m in msgs])]


def _load_langchain_anthropic() -> list[Peer]:
    convert: Any = import_module("langchain_anthropic.chat_models")._format_messages

    def run(msgs: Any) -> object:
        return convert(msgs, model="claude-sonnet-4-5")

    return [Peer("LangChain Anthropic", "anthropic", as_langchain_messages, run)]


def _load_litellm_anthropic() -> list[Peer]:
    convert: Any = import_module("litellm.litellm_core_utils.prompt_templates.factory").anthropic_messages_pt

    def run(msgs: Any) -> object:
        return convert(messages=msgs, model="claude-sonnet-4-5", llm_provider="anthropic")

    def prepare(msgs: Sequence[PlainMsg]) -> Any:
        return [msg for msg in as_openai_dicts(msgs) if msg["role"] != "system"]

    return [Peer("litellm Anthropic", "anthropic", prepare, run)]


def _load_pydantic_ai() -> list[Peer]:
    models: Any = import_module("pydantic_ai.models")
    module: Any = import_module("pydantic_ai.models.openai")
    provider = import_module("pydantic_ai.providers.openai").OpenAIProvider(api_key="none")
    model = module.OpenAIChatModel("gpt-4o", provider=provider)
    settings = models.ModelRequestParameters()

    def run(msgs: Any) -> object:
        return run_without_loop(model._map_messages(msgs, settings))

    return [Peer("pydantic-ai OpenAI", "openai", as_pydantic_ai_messages, run)]


def as_pydantic_ai_messages(msgs: Sequence[PlainMsg]) -> list[Any]:
    """Returns a history as messages of pydantic-ai."""
    parts: Any = import_module("pydantic_ai.messages")
    out: list[Any] = []
    for msg in msgs:
        if results := _get_results(msg):
            returns = [parts.ToolReturnPart(r.name, r.output, r.id) for r in results]
            out.append(parts.ModelRequest(parts=returns))
        elif msg.role == "assistant":
            texts = [parts.TextPart(text)] if (text := _join_texts(msg)) else []
            calls = [parts.ToolCallPart(c.name, c.input, c.id) for c in _get_calls(msg)]
            out.append(parts.ModelResponse(parts=[*texts, *calls]))
        else:
            part_class = parts.SystemPromptPart if msg.role == "system" else parts.UserPromptPart
            out.append(parts.ModelRequest(parts=[part_class(_join_texts(msg))]))
    return out


def as_agentscope_messages(msgs: Sequence[PlainMsg]) -> list[Any]:
    """Returns a history as messages of AgentScope."""
    module: Any = import_module("agentscope.message")
    out: list[Any] = []
    for msg in msgs:
        content: Any = msg.content
        if not isinstance(content, str):
            content = [_as_agentscope_block(module, block) for block in content]
        out.append(module.Msg(msg.name, content, msg.role))
    return out


def _as_agentscope_block(module: Any, block: PlainText | PlainCall | PlainResult) -> Any:
    if isinstance(block, PlainText):
        return module.TextBlock(type="text", text=block.text)
    if isinstance(block, PlainCall):
        return module.ToolUseBlock(type="tool_use", id=block.id, name=block.name, input=block.input)
    return module.ToolResultBlock(type="tool_result", id=block.id, name=block.name, output=block.output)


def _load_agentscope() -> list[Peer]:
    module: Any = import_module("agentscope.formatter")
    formatters = [
        ("AgentScope 1 OpenAI", "openai", module.OpenAIChatFormatter()),
        ("AgentScope 1 Anthropic", "anthropic", module.AnthropicChatFormatter()),
        ("AgentScope 1 OpenAI multi-agent", "openai", module.OpenAIMultiAgentFormatter()),
        ("AgentScope 1 Anthropic multi-agent", "anthropic", module.AnthropicMultiAgentFormatter()),
    ]

    def create_peer(name: str, floor_name: str, formatter: Any) -> Peer:
        return Peer(
            name, floor_name, as_agentscope_messages, lambda msgs: run_without_loop(formatter.format(msgs))
        )

    return [create_peer(*each) for each in formatters]


def _load_langchain_cutters() -> list[Cutter]:
    trim: Any = import_module("langchain_core.messages").trim_messages
    convert_openai: Any = import_module("langchain_openai.chat_models.base")._convert_message_to_dict
    convert_anthropic: Any = import_module("langchain_anthropic.chat_models")._format_messages

    def count(msgs: Any) -> int:
        return sum(
            estimate_tokens(msg.content) + sum(estimate_tokens(c["args"]) for c in _get_langchain_calls(msg))
            for msg in msgs
        )

    def cut(msgs: Any, limit: int) -> Any:
        return trim(msgs, max_tokens=limit, token_counter=count, strategy="last", include_system=True)

    def as_anthropic(msgs: Any) -> list[dict[str, Any]]:
        system, turns = convert_anthropic(msgs, model="claude-sonnet-4-5")
        return [{"role": "system", "content": system}, *turns]

    return [
        Cutter("LangChain OpenAI", as_langchain_messages, cut, lambda msgs: [convert_openai(msg) for msg in msgs]),
        Cutter("LangChain Anthropic", as_langchain_messages, cut, as_anthropic),
    ]


def _get_langchain_calls(msg: Any) -> list[dict[str, Any]]:
    return getattr(msg, "tool_calls", [])


def _load_litellm_cutters() -> list[Cutter]:
    module: Any = import_module("litellm.utils")
    getLogger("LiteLLM").setLevel(CRITICAL)

    def count(model: str = "", text: Any = None, messages: Any = None, **_: Any) -> int:
        return estimate_tokens(text or "") + sum(map(estimate_tokens, messages or []))

    def cut(msgs: Any, limit: int) -> Any:
        original = module.token_counter
        module.token_counter = count
        try:
            return module.trim_messages(msgs, model="gpt-4o", max_tokens=limit, trim_ratio=1.0)
        finally:
            module.token_counter = original

    def prepare(msgs: Sequence[PlainMsg]) -> Any:
        return [
            {**msg, "content": msg["content"] or ""} for msg in as_openai_dicts(msgs)
        ]  # litellm cannot cut None

    return [Cutter("litellm OpenAI", prepare, cut, is_slow=True)]


def _load_agentscope_cutters() -> list[Cutter]:
    base: Any = import_module("agentscope.token").TokenCounterBase
    module: Any = import_module("agentscope.formatter")

    async def count(self: Any, messages: list[Any], **_: Any) -> int:
        return sum(map(estimate_tokens, messages))

    counter = type("EstimatingCounter", (base,), {"count": count})()

    def create_cutter(name: str, formatter_class: Any) -> Cutter:
        def cut(msgs: Any, limit: int) -> Any:
            return run_without_loop(formatter_class(token_counter=counter, max_tokens=limit).format(msgs))

        return Cutter(f"AgentScope 1 {name}", as_agentscope_messages, cut, is_slow=True)

    return [
        create_cutter("OpenAI", module.OpenAIChatFormatter),
        create_cutter("Anthropic", module.AnthropicChatFormatter),
    ]


def run_without_loop(pending: Any) -> object:
    """Runs a coroutine that never waits without an event loop. Returns its result."""
    try:
        pending.send(None)
    except StopIteration as done:
        return done.value
    pending.close()
    raise RuntimeError("the coroutine waits for something. Use run_async() instead.")


_runner = asyncio.Runner()


def run_async(pending: Any) -> Any:
    """Returns the result of a coroutine, run in one shared event loop.

    `asyncio.run()` would create a loop and install a signal handler for each call.
    """
    return _runner.get_loop().run_until_complete(pending)


def finish_background_work() -> None:
    """Runs pending background work, such as logging of litellm, so that the next sample excludes it."""
    run_async(asyncio.sleep(0.03))
