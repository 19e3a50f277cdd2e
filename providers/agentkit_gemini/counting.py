"""Token counter that calls the token-counting API of Gemini."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agentkit.provider_kit import RemoteTokenCounter, TokenCount
from agentkit_gemini._part_reader import as_content
from agentkit_gemini.capabilities import LAYOUT

__all__ = ["GeminiTokenCounter"]

_SCHEMA_KEYS = ("response_mime_type", "response_schema", "response_json_schema")
_ESTIMATED = "tokens of tools and output schema are estimated, because the API does not count them"
_COUNTED_AS_TURN = "the system instruction is counted as a user turn, because the API counts only turns"


class GeminiTokenCounter(RemoteTokenCounter):
    """Token counter that calls `count_tokens` of google-genai.

    Create the counter with `GeminiTokenCounter(client.aio.models.count_tokens, model=…)`. Vertex AI counts the
    complete request. The Gemini Developer API counts only `contents`. For this API, the counter sends the system
    instruction as a user turn, and estimates the tokens of the tools and the output schema.
    """

    layout = LAYOUT
    media_tokens = 1_120

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """Returns the number of prompt tokens of `generate_content(**request)`.

        Raises:
            ValueError: The SDK refuses the request. If the SDK refuses an argument that only Vertex AI supports,
                the counter sends the request without such arguments instead.
        """
        config = cast("dict[str, Any]", request.get("config") or {})
        prompt_config, contents = _prompt_config(config), self.part(request, "contents")
        if prompt_config:
            try:
                answer = await self.ask(model=self.model, contents=contents, config=prompt_config)
            except ValueError as error:
                if "only supported in" not in str(error):
                    raise
            else:
                return TokenCount(self.read_count(answer, "total_tokens"))
        return await self._count_contents(contents, prompt_config)

    async def _count_contents(self, contents: Any, prompt_config: dict[str, Any]) -> TokenCount:
        """Returns the count of the Gemini Developer API, plus an estimate for the tools and the output schema."""
        system = prompt_config.get("system_instruction")
        head = [] if system is None else [{**as_content(system), "role": "user"}]
        turns = cast("list[Any]", contents) if isinstance(contents, list) else [contents]
        answer = await self.ask(model=self.model, contents=[*head, *turns])
        uncounted = {"tools": prompt_config.get("tools", []), **prompt_config.get("generation_config", {})}
        if not any(uncounted.values()):
            return TokenCount(self.read_count(answer, "total_tokens"), [_COUNTED_AS_TURN] * len(head))
        estimate = await self.estimate_request({key: part for key, part in uncounted.items() if part})
        return TokenCount(
            self.read_count(answer, "total_tokens") + estimate, [*[_COUNTED_AS_TURN] * len(head), _ESTIMATED]
        )


def _prompt_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config for `count_tokens` with the fields of `config` that add tokens to the prompt.

    Source: google-genai, CountTokensConfig.
    """
    prompt = {key: config[key] for key in ("system_instruction", "tools") if config.get(key)}
    schema = {key: config[key] for key in _SCHEMA_KEYS if config.get(key)}
    return {**prompt, "generation_config": schema} if schema else prompt
