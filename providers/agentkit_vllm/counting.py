"""vLLM's own count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from agentkit.provider_kit import (
    LocalTokenCounter,
    OptionError,
    RemoteTokenCounter,
    TokenCount,
    WireLayout,
)
from agentkit_openai import CHAT

__all__ = ["VLLMTokenCounter"]

_MEDIA = frozenset({"image_url", "audio_url", "video_url", "input_audio"})
_REASON = "the endpoint counts text only: media are estimated"


class VLLMTokenCounter(RemoteTokenCounter):
    """`VLLMTokenCounter(client.post, model=…)`, with `client = AsyncOpenAI(base_url="http://…/v1")`.

    url   the endpoint; by default `/tokenize` at the root of the client's server (vLLM's docs)

    The server renders its chat template, tools included, and counts: exact for text. What media become inside
    the model it does not say: they are left out and estimated. Tools count under `tool_choice="none"` too, as the
    server shows them to the model then, unless it runs with `--exclude-tools-when-tool-choice-none`.
    """

    layout: ClassVar[WireLayout] = CHAT.layout

    def __init__(
        self,
        call: Callable[..., Any],
        *,
        model: str,
        url: str | None = None,
        local: LocalTokenCounter | None = None,
    ) -> None:
        super().__init__(call, model=model, local=local)
        self.url = url or _endpoint(call)

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """The prompt tokens of `chat.completions.create(**request)`."""
        left_out: list[Any] = []
        extra = cast("dict[str, Any]", request.get("extra_body") or {})
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [_message(message, left_out) for message in self.part(request, "messages")],
            "add_generation_prompt": extra.get("add_generation_prompt", True),
        }
        if request.get("tools"):  # under tool_choice "none" too: the server renders them in any case
            body["tools"] = request["tools"]
        if extra.get("chat_template_kwargs"):
            body["chat_template_kwargs"] = extra["chat_template_kwargs"]
        answer = await self.ask(self.url, cast_to=object, body=body)
        return TokenCount(
            self.read_count(answer, "count") + await self.estimate(left_out), [_REASON] * bool(left_out)
        )


def _endpoint(call: Callable[..., Any]) -> str:
    """`/tokenize` beside the `/v1` of the client that the method is bound to."""
    base = getattr(getattr(call, "__self__", None), "base_url", None)
    if base is None:
        raise OptionError("url", "the method belongs to no client with a `base_url`", "Pass url=.")
    return f"{str(base).rstrip('/').removesuffix('/v1')}/tokenize"


def _message(message: Mapping[str, Any], left_out: list[Any]) -> Mapping[str, Any]:
    """The message without its media, which go into `left_out`."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = cast("list[dict[str, Any]]", content)
    media = [part for part in parts if part.get("type") in _MEDIA]
    left_out.extend(media)
    kept = [part for part in parts if part.get("type") not in _MEDIA] or [{"type": "text", "text": ""}]
    return {**message, "content": kept} if media else message
