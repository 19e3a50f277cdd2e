"""Token counter that asks a vLLM server for the token count of a Chat Completions request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from agentkit.provider_kit import LocalTokenCounter, OptionError, RemoteTokenCounter, TokenCount
from agentkit_openai import CHAT

__all__ = ["VLLMTokenCounter"]

_MEDIA_TYPES = frozenset({"image_url", "audio_url", "video_url", "input_audio"})
_REASON = "tokens of media are estimated, because the counting endpoint counts only text"


class VLLMTokenCounter(RemoteTokenCounter):
    """Token counter that asks a vLLM server for the token count of a Chat Completions request.

    Example: `VLLMTokenCounter(client.post, model=…)`, with `client = AsyncOpenAI(base_url="http://…/v1")`.

    The server renders its chat template with all tools and counts the tokens of the text exactly. The counter
    estimates the tokens of media, because the server does not count these tokens. The server renders tools even if
    `tool_choice` is `"none"`, unless the server was started with `--exclude-tools-when-tool-choice-none`.

    Args:
        call: Method `post` of an async client of the openai SDK.
        model: Name of the model.
        url: URL of the counting endpoint. If None, the path is `/tokenize` at the root of the client's server
            (vLLM's docs).
        local: Counter that estimates the tokens of media. If None, a `CharacterTokenCounter` is used.

    Raises:
        OptionError: An option has an invalid value. Or `url` is None, and `call` is not a method of a client.
    """

    layout = CHAT.layout

    def __init__(
        self,
        call: Callable[..., Any],
        *,
        model: str,
        url: str | None = None,
        local: LocalTokenCounter | None = None,
    ) -> None:
        super().__init__(call, model=model, local=local)
        self.url = url or _find_endpoint(call)

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """Returns the number of prompt tokens of `chat.completions.create(**request)`. Media tokens are estimated.

        Raises:
            InputError: The request has no `messages`.
            ModelError: The reply has no token count.
            Exception: Any error of the SDK, with the credentials of the client redacted.
        """
        media: list[Any] = []
        extra = cast("dict[str, Any]", request.get("extra_body") or {})
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [_remove_media(message, media) for message in self.part(request, "messages")],
            "add_generation_prompt": extra.get("add_generation_prompt", True),
        }
        if request.get("tools"):
            body["tools"] = request["tools"]
        if extra.get("chat_template_kwargs"):
            body["chat_template_kwargs"] = extra["chat_template_kwargs"]
        reply = await self.ask(self.url, cast_to=object, body=body)
        tokens = self.read_count(reply, "count") + await self.estimate(media)
        return TokenCount(tokens, [_REASON] * bool(media))


def _find_endpoint(call: Callable[..., Any]) -> str:
    """Returns the URL of `/tokenize` on the server that the client of `call` uses."""
    base_url = getattr(getattr(call, "__self__", None), "base_url", None)
    if base_url is None:
        raise OptionError(
            "url",
            "is None and cannot be derived, because `call` is not a method of a client with a `base_url`",
            "Pass url='http://HOST/tokenize'.",
        )
    return f"{str(base_url).rstrip('/').removesuffix('/v1')}/tokenize"


def _remove_media(message: Mapping[str, Any], media: list[Any]) -> Mapping[str, Any]:
    """Returns a message without its media parts, and appends these parts to `media`."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = cast("list[dict[str, Any]]", content)
    media_parts = [part for part in parts if part.get("type") in _MEDIA_TYPES]
    if not media_parts:
        return message
    media.extend(media_parts)
    other_parts = [part for part in parts if part.get("type") not in _MEDIA_TYPES]
    return {**message, "content": other_parts or [{"type": "text", "text": ""}]}
