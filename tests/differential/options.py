"""Generated options of requests, as plain data: history policies, budgets, tools, choices, models, loss modes."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from tests.differential.vocabulary import FORMATS, MODELS, TOOL_NAMES, TOOLS

__all__ = ["draw_options"]

_MARKERS: Final = {
    "anthropic": ("auto", "auto-1h"),
    "openai": ("auto",),
    "openai-responses": ("auto",),
    "dashscope": ("auto",),
    "dashscope-compatible": ("auto",),
    "deepseek": ("auto",),
    "vllm": ("auto",),
}
"""By provider: values of `cache_breakpoints`."""

_RULES: Final[tuple[dict[str, Any], ...]] = (
    {"system_role": False, "tool_role": False, "images": False, "alternating_turns": True},
    {"parallel_tool_calls": False, "alternating_turns": True, "call_ids": "mistral", "audio": False},
    {"alternating_turns": False, "documents": False, "video": False},
    {"tool_role": False},
)


def draw_options(rng: Random, provider: str, form: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the options of one request, keyed by the names that the worker knows."""
    options: dict[str, Any] = {"provider": provider, "form": form, "model": _draw_model(rng, provider)}
    history = _draw_history(rng, form, messages)
    if history:
        options["history"] = history
    options["on_loss"] = rng.choice(("describe", "describe", "describe", "describe", "drop", "drop", "raise"))
    if rng.random() < 0.45:
        options["budget"] = _draw_budget(rng, messages)
    if rng.random() < 0.4:
        options |= _draw_tools(rng)
    if rng.random() < 0.1:
        options["response_format"] = rng.choice(FORMATS)
    if rng.random() < 0.2 and provider in _MARKERS:
        options["cache_breakpoints"] = rng.choice(_MARKERS[provider])
    if rng.random() < 0.1:
        options["model_rules"] = rng.choice(_RULES)
    if rng.random() < 0.1 and provider == "openai":
        options["spoken_replies"] = "transcript"
    if rng.random() < 0.1 and provider == "dashscope":
        options["path"] = rng.choice(("text", "multimodal"))
    if rng.random() < 0.2:
        options["media_roots"] = ["."]
    if rng.random() < 0.15 and len(messages) > 2:
        options["before"] = rng.randint(1, len(messages) - 1)
    if rng.random() < 0.1:
        options["synchronous"] = True
    elif rng.random() < 0.1 and "budget" in options and len(messages) > 8:
        options["adopted"] = rng.choice((1, 2, 3))
    return options


def _draw_model(rng: Random, provider: str) -> str | None:
    return rng.choice(MODELS[provider]) if rng.random() < 0.5 else None


def _draw_history(rng: Random, form: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    if form == "chat" or (form == "multi-agent" and rng.random() < 0.4):
        return {}
    options: dict[str, Any] = {}
    if form == "viewer":
        names = [message["name"] for message in messages]
        options["viewer"] = rng.choice((*names, "Friday", "Alice"))
        options["others_tools"] = rng.choice(("text", "text", "drop", "native"))
    if rng.random() < 0.25:
        options["frame"] = "plain"
    if rng.random() < 0.15:
        options["preamble"] = rng.choice(("", "Read this.", "Read this.\n"))
    if rng.random() < 0.15:
        options["tags"] = rng.choice(("log", "chat.log"))
    if rng.random() < 0.2:
        options["timestamps"] = True
    if rng.random() < 0.15:
        options["visible"] = rng.choice(("B", "A"))
    return {"custom": True} if rng.random() < 0.04 else options


def _draw_tools(rng: Random) -> dict[str, Any]:
    tools = rng.sample(TOOLS, rng.randint(1, 4))
    options: dict[str, Any] = {"tools": tools}
    names = [tool["function"]["name"] if "function" in tool else tool["name"] for tool in tools]
    if rng.random() < 0.6:
        options["tool_choice"] = rng.choice(
            (
                "auto", "none", "required", rng.choice(names), names[:2], {"name": names[0]},
                {"mode": "auto", "names": names[:1]}, {"type": "function", "function": {"name": names[-1]}},
                "absent",
            )
        )  # fmt: skip
    return options


_SHARES: Final = (-0.5, 0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 3)
"""How much of what a cut may take is left, roughly: below 0 nothing fits, above 1 nothing is cut."""

# -- budgets ---------------------------------------------------------------------------------------------------


def _draw_budget(rng: Random, messages: list[dict[str, Any]]) -> dict[str, Any]:
    size = sum(map(_estimate, messages)) + 60
    stay = [message for message in messages[:-3] if message.get("role") == "system" or message.get("pinned")]
    needed = sum(map(_estimate, (*stay, *messages[-3:]))) + 60
    limit = max(20, int(needed + (size - needed) * rng.choice(_SHARES)))
    budget: dict[str, Any] = {"max_tokens": limit}
    if rng.random() < 0.15:
        budget |= {"max_tokens": limit + 50, "reserve": 50}
    if rng.random() < 0.75:
        budget["strategy"] = [_draw_strategy(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        if sum(name == "Summarise" for name, _ in budget["strategy"]) > 1:
            budget["strategy"] = budget["strategy"][:1]
    if rng.random() < 0.15:
        budget["never_cut"] = rng.sample(TOOL_NAMES[:3], rng.randint(1, 2))
    if rng.random() < 0.15:
        budget["cut_first"] = rng.sample(TOOL_NAMES[:3], rng.randint(1, 2))
    if rng.random() < 0.2:
        budget["counter"] = rng.choice(("bytes", "words"))
        budget["max_tokens"] *= 4 if budget["counter"] == "bytes" else 1
    return budget


def _draw_strategy(rng: Random) -> tuple[str, dict[str, Any]]:
    name = rng.choice(("OldestFirst", "Stepped", "ClearResults", "ShrinkResults", "DropMedia", "Summarise"))
    options: dict[str, Any] = {}
    if rng.random() < 0.4:
        options["step"] = rng.choice((None, 0, 10, 50, 200))
    if name in ("OldestFirst", "Stepped", "Summarise") and rng.random() < 0.4:
        options["keep_task"] = rng.random() < 0.5
    if name in ("ClearResults", "DropMedia"):
        options["keep"] = rng.choice((0, 1, 2))
    if name == "ClearResults":
        options["characters"] = rng.choice((0, 10, 50))
    if name == "ShrinkResults":
        options["characters"] = rng.choice((0, 10, 60))
    if name == "Summarise":
        options["max_tokens"] = rng.choice((200, 1_000))
    return name, options


def _estimate(message: dict[str, Any]) -> int:
    """Returns roughly the number of tokens of a stored message, its media counted as a thousand each."""
    content: Any = message["content"]
    if isinstance(content, str):
        return 8 + len(content) // 4
    return 8 + sum(200 if "source" in json.dumps(block) else len(json.dumps(block)) // 6 for block in content)
