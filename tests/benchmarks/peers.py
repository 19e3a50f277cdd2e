"""Peers, each optional: what is not installed, or fails to load, is left out and said so.

Everything here is reached by name, so that neither the type checkers nor the test suite need any of them.
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
    "Trim",
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
    "load_trims",
]


_Found = TypeVar("_Found")
_NAMES = {"langchain": "LangChain", "pydantic": "pydantic-ai", "agentscope": "AgentScope 1"}

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # it asks the network for prices otherwise


@dataclass(frozen=True, slots=True)
class Peer:
    """One conversion of one peer: fresh native history, and the conversion itself."""

    name: str
    floor: str
    prepare: Callable[[Sequence[PlainMsg]], Any]
    run: Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Trim:
    """One peer's cut to a number of tokens, and the native turns of what is left; a free counter counts."""

    name: str
    prepare: Callable[[Sequence[PlainMsg]], Any]
    cut: Callable[[Any, int], Any]
    convert: Callable[[Any], list[dict[str, Any]]] = list
    slow: bool = False  # whether it takes seconds at a thousand messages


def load_conversions(problems: list[str]) -> list[Peer]:
    """All conversions that can run here; what cannot is added to `problems`."""
    return load_installed(
        (_langchain_openai, _langchain_anthropic, _litellm_anthropic, _pydantic_ai, _agentscope), problems
    )


def load_trims(problems: list[str]) -> list[Trim]:
    """All cuts that can run here; what cannot is added to `problems`."""
    return load_installed((_langchain_trims, _litellm_trims, _agentscope_trims), problems)


def load_installed(loaders: Sequence[Callable[[], list[_Found]]], problems: list[str]) -> list[_Found]:
    """What loaders named after peers bring; who cannot load is added to `problems`."""
    found: list[_Found] = []
    for load in loaders:
        try:
            found.extend(load())
        except Exception as error:
            who = load.__name__.removeprefix("_sdk").split("_")[1]
            name = _NAMES.get(who, who)
            problems.append(f"{name} ({type(error).__name__}: {str(error).splitlines()[0][:90]})")
    return found


def estimate_tokens(part: Any) -> int:
    """A token for every four characters of each string: the free counter of all peers."""
    if isinstance(part, str):
        return len(part) // 4
    if isinstance(part, dict):
        return sum(map(estimate_tokens, cast("dict[str, Any]", part).values()))
    if isinstance(part, list):
        return sum(map(estimate_tokens, cast("list[Any]", part)))
    return 0


def _texts(msg: PlainMsg) -> str:
    content = msg.content
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, PlainText))


def _calls(msg: PlainMsg) -> list[PlainCall]:
    return [] if isinstance(msg.content, str) else [b for b in msg.content if isinstance(b, PlainCall)]


def _results(msg: PlainMsg) -> list[PlainResult]:
    return [] if isinstance(msg.content, str) else [b for b in msg.content if isinstance(b, PlainResult)]


def as_langchain_messages(msgs: Sequence[PlainMsg]) -> list[Any]:
    """LangChain's own messages."""
    core = import_module("langchain_core.messages")
    out: list[Any] = []
    for msg in msgs:
        if results := _results(msg):
            out.extend(core.ToolMessage(content=r.output, tool_call_id=r.id, name=r.name) for r in results)
        elif msg.role == "assistant":
            calls = [{"name": c.name, "args": c.input, "id": c.id, "type": "tool_call"} for c in _calls(msg)]
            out.append(core.AIMessage(content=_texts(msg), tool_calls=calls))
        else:
            kind = core.SystemMessage if msg.role == "system" else core.HumanMessage
            out.append(kind(content=_texts(msg)))
    return out


def as_openai_dicts(msgs: Sequence[PlainMsg]) -> list[dict[str, Any]]:
    """OpenAI's form, which is litellm's own."""
    from tests.benchmarks.floor import convert_openai

    return convert_openai(msgs, True)


def _langchain_openai() -> list[Peer]:
    convert: Any = import_module("langchain_openai.chat_models.base")._convert_message_to_dict
    return [Peer("LangChain OpenAI", "openai", as_langchain_messages, lambda found: [convert(m) for m in found])]


def _langchain_anthropic() -> list[Peer]:
    convert: Any = import_module("langchain_anthropic.chat_models")._format_messages

    def run(found: Any) -> object:
        return convert(found, model="claude-sonnet-4-5")

    return [Peer("LangChain Anthropic", "anthropic", as_langchain_messages, run)]


def _litellm_anthropic() -> list[Peer]:
    convert: Any = import_module("litellm.litellm_core_utils.prompt_templates.factory").anthropic_messages_pt

    def run(found: Any) -> object:
        return convert(messages=found, model="claude-sonnet-4-5", llm_provider="anthropic")

    def prepare(msgs: Sequence[PlainMsg]) -> Any:
        return [msg for msg in as_openai_dicts(msgs) if msg["role"] != "system"]

    return [Peer("litellm Anthropic", "anthropic", prepare, run)]


def _pydantic_ai() -> list[Peer]:
    models: Any = import_module("pydantic_ai.models")
    home: Any = import_module("pydantic_ai.models.openai")
    provider = import_module("pydantic_ai.providers.openai").OpenAIProvider(api_key="none")
    model = home.OpenAIChatModel("gpt-4o", provider=provider)
    settings = models.ModelRequestParameters()

    def run(found: Any) -> object:
        return run_without_loop(model._map_messages(found, settings))

    return [Peer("pydantic-ai OpenAI", "openai", as_pydantic_ai_messages, run)]


def as_pydantic_ai_messages(msgs: Sequence[PlainMsg]) -> list[Any]:
    """pydantic-ai's own messages."""
    parts: Any = import_module("pydantic_ai.messages")
    out: list[Any] = []
    for msg in msgs:
        if results := _results(msg):
            held = [parts.ToolReturnPart(r.name, r.output, r.id) for r in results]
            out.append(parts.ModelRequest(parts=held))
        elif msg.role == "assistant":
            said = [parts.TextPart(text)] if (text := _texts(msg)) else []
            calls = [parts.ToolCallPart(c.name, c.input, c.id) for c in _calls(msg)]
            out.append(parts.ModelResponse(parts=[*said, *calls]))
        else:
            kind = parts.SystemPromptPart if msg.role == "system" else parts.UserPromptPart
            out.append(parts.ModelRequest(parts=[kind(_texts(msg))]))
    return out


def as_agentscope_messages(msgs: Sequence[PlainMsg]) -> list[Any]:
    """AgentScope's own messages."""
    home: Any = import_module("agentscope.message")
    out: list[Any] = []
    for msg in msgs:
        content: Any = msg.content
        if not isinstance(content, str):
            content = [_agentscope_block(home, block) for block in content]
        out.append(home.Msg(msg.name, content, msg.role))
    return out


def _agentscope_block(home: Any, block: PlainText | PlainCall | PlainResult) -> Any:
    if isinstance(block, PlainText):
        return home.TextBlock(type="text", text=block.text)
    if isinstance(block, PlainCall):
        return home.ToolUseBlock(type="tool_use", id=block.id, name=block.name, input=block.input)
    return home.ToolResultBlock(type="tool_result", id=block.id, name=block.name, output=block.output)


def _agentscope() -> list[Peer]:
    home: Any = import_module("agentscope.formatter")
    found = [
        ("AgentScope 1 OpenAI", "openai", home.OpenAIChatFormatter()),
        ("AgentScope 1 Anthropic", "anthropic", home.AnthropicChatFormatter()),
        ("AgentScope 1 OpenAI multi-agent", "openai", home.OpenAIMultiAgentFormatter()),
        ("AgentScope 1 Anthropic multi-agent", "anthropic", home.AnthropicMultiAgentFormatter()),
    ]

    def peer(name: str, base: str, formatter: Any) -> Peer:
        return Peer(name, base, as_agentscope_messages, lambda msgs: run_without_loop(formatter.format(msgs)))

    return [peer(*each) for each in found]


def _langchain_trims() -> list[Trim]:
    trim: Any = import_module("langchain_core.messages").trim_messages
    openai: Any = import_module("langchain_openai.chat_models.base")._convert_message_to_dict
    anthropic: Any = import_module("langchain_anthropic.chat_models")._format_messages

    def count(msgs: Any) -> int:
        return sum(
            estimate_tokens(msg.content) + sum(estimate_tokens(c["args"]) for c in _lang_calls(msg))
            for msg in msgs
        )

    def cut(msgs: Any, limit: int) -> Any:
        return trim(msgs, max_tokens=limit, token_counter=count, strategy="last", include_system=True)

    def to_anthropic(msgs: Any) -> list[dict[str, Any]]:
        system, turns = anthropic(msgs, model="claude-sonnet-4-5")
        return [{"role": "system", "content": system}, *turns]

    return [
        Trim("LangChain OpenAI", as_langchain_messages, cut, lambda msgs: [openai(msg) for msg in msgs]),
        Trim("LangChain Anthropic", as_langchain_messages, cut, to_anthropic),
    ]


def _lang_calls(msg: Any) -> list[dict[str, Any]]:
    return getattr(msg, "tool_calls", [])


def _litellm_trims() -> list[Trim]:
    home: Any = import_module("litellm.utils")
    getLogger("LiteLLM").setLevel(CRITICAL)

    def count(model: str = "", text: Any = None, messages: Any = None, **_: Any) -> int:
        return estimate_tokens(text or "") + sum(map(estimate_tokens, messages or []))

    def cut(msgs: Any, limit: int) -> Any:
        kept = home.token_counter
        home.token_counter = count
        try:
            return home.trim_messages(msgs, model="gpt-4o", max_tokens=limit, trim_ratio=1.0)
        finally:
            home.token_counter = kept

    def prepare(msgs: Sequence[PlainMsg]) -> Any:
        return [{**msg, "content": msg["content"] or ""} for msg in as_openai_dicts(msgs)]  # it cannot cut None

    return [Trim("litellm OpenAI", prepare, cut, slow=True)]


def _agentscope_trims() -> list[Trim]:
    base: Any = import_module("agentscope.token").TokenCounterBase
    home: Any = import_module("agentscope.formatter")

    async def count(self: Any, messages: list[Any], **_: Any) -> int:
        return sum(map(estimate_tokens, messages))

    counter = type("Free", (base,), {"count": count})()

    def trim(name: str, kind: Any) -> Trim:
        def cut(msgs: Any, limit: int) -> Any:
            return run_without_loop(kind(token_counter=counter, max_tokens=limit).format(msgs))

        return Trim(f"AgentScope 1 {name}", as_agentscope_messages, cut, slow=True)

    return [trim("OpenAI", home.OpenAIChatFormatter), trim("Anthropic", home.AnthropicChatFormatter)]


def run_without_loop(pending: Any) -> object:
    """Run a coroutine that waits for nothing; the event loop is only there if it does."""
    try:
        pending.send(None)
    except StopIteration as done:
        return done.value
    pending.close()
    raise RuntimeError("the coroutine waited for something")


_runner = asyncio.Runner()


def run_async(pending: Any) -> Any:
    """Run a coroutine in one event loop that is kept, without what a runner does about interrupts each time."""
    return _runner.get_loop().run_until_complete(pending)


def finish_background_work() -> None:
    """Let those who put work off do it, so that it is not billed to who comes next: litellm logs afterwards."""
    run_async(asyncio.sleep(0.03))
