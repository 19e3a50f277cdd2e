"""Gemini's own count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

from agentkit.provider_kit import (
    RemoteTokenCounter,
    TokenCount,
    WireLayout,
)
from agentkit_gemini.capabilities import LAYOUT

__all__ = ["GeminiTokenCounter"]

_SCHEMAS = ("response_mime_type", "response_schema", "response_json_schema")
_LEFT_OUT = "the endpoint takes no tools and no output schema: estimated"
_MOVED = "the system instruction is counted as a turn"


class GeminiTokenCounter(RemoteTokenCounter):
    """`GeminiTokenCounter(client.aio.models.count_tokens, model=…)`, with google-genai's `Client`.

    The enterprise platform takes the very request. The Gemini API counts contents alone (its SDK raises
    ValueError for the rest): there the system instruction is counted as a turn, and tools and the output schema
    are estimated.
    """

    layout: ClassVar[WireLayout] = LAYOUT
    media_tokens: ClassVar[int] = 1_120

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """The prompt tokens of `generate_content(**request)`."""
        config = cast("dict[str, Any]", request.get("config") or {})
        whole, contents = _whole(config), self.part(request, "contents")
        if whole:
            try:
                answer = await self.ask(model=self.model, contents=contents, config=whole)
            except ValueError as error:
                if "only supported in" not in str(error):
                    raise
            else:
                return TokenCount(self.read_count(answer, "total_tokens"))
        return await self._in_parts(contents, whole)

    async def _in_parts(self, contents: Any, whole: dict[str, Any]) -> TokenCount:
        """What the Gemini API counts, and an estimate of what it does not."""
        system = whole.get("system_instruction")
        head = [] if system is None else [_content(system)]
        turns = cast("list[Any]", contents) if isinstance(contents, list) else [contents]
        answer = await self.ask(model=self.model, contents=[*head, *turns])
        spare = {"tools": whole.get("tools", []), **whole.get("generation_config", {})}
        if not any(spare.values()):
            return TokenCount(self.read_count(answer, "total_tokens"), [_MOVED] * len(head))
        estimate = await self.estimate_request({key: part for key, part in spare.items() if part})
        return TokenCount(self.read_count(answer, "total_tokens") + estimate, [*[_MOVED] * len(head), _LEFT_OUT])


def _whole(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a call's config that is prompt (SDK: CountTokensConfig)."""
    kept = {key: config[key] for key in ("system_instruction", "tools") if config.get(key)}
    schema = {key: config[key] for key in _SCHEMAS if config.get(key)}
    return {**kept, "generation_config": schema} if schema else kept


def _content(system: Any) -> dict[str, Any]:
    """A system instruction (text, parts or a content) as a turn."""
    parts: Any = cast("dict[str, Any]", system).get("parts") if isinstance(system, dict) else None
    if parts is not None:
        return {"role": "user", "parts": parts}
    if isinstance(system, list):
        return {"role": "user", "parts": cast("list[Any]", system)}
    return {"role": "user", "parts": [{"text": system}]}
