"""Counting with a tokenizer's ranks: texts exactly, and by rule what the service writes around them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, ClassVar, Final, cast

import anyio.to_thread

from agentkit.argument_checks import check_option, check_text
from agentkit.capabilities.wire_layout import LayoutSource, WireLayout
from agentkit.errors import MissingExtraError, OptionError
from agentkit.json_values import as_object
from agentkit.messages.blocks import MediaBlock
from agentkit.messages.message import Msg
from agentkit.messages.sources import URLSource
from agentkit.tokens.counters import Overheads, TextTokenCounter, TokenCount, find_layout, weight_key
from agentkit.tokens.encodings import BASE, ENCODINGS, Count, find_encoding, find_encoding_package, load_encoding
from agentkit.tokens.estimate import TextCounts
from agentkit.tokens.media_costs import MediaPrices
from agentkit.tokens.request_parts import MediaPart, RequestParts, compact_json

__all__ = ["TiktokenCounter"]

# OpenAI's cookbook, how_to_count_tokens_with_tiktoken.
_TURN: Final = 3
_REPLY: Final = 3
_SPEAKER: Final = 1
_TOOLS: Final = 9
_CALL: Final = 5  # 3 to 7 around the name and the arguments of a call
_FIELD: Final = 2  # quotes, colon and comma around a key, where the wire has objects for JSON
_CALLS = "what frames calls and tools is not published"
_MUCH: Final = 200_000  # characters that take more than a few milliseconds


class TiktokenCounter(TextTokenCounter):
    """Counts with the ranks of the model's encoding, as tiktoken does, for requests of every wire.

    model     the model that the request is for; it decides the encoding and what pictures cost
    encoding  the encoding, where you know it better: `o200k_base`, `cl100k_base`, `qwen3`, `deepseek_v3` …

    Texts are exact, and so are pictures whose size is in the request; `estimated` of a count says what is not.
    Ranks come from splintr, which brings its own and agrees with tiktoken, or from tiktoken where it has them in
    its cache: nothing is downloaded. Without either the constructor raises MissingExtraError. The ranks are
    loaded when they are first needed; `await counter.prepare()` loads them off the event loop.
    """

    slow: ClassVar[bool] = True
    overheads: ClassVar[Overheads] = Overheads(_TURN + _SPEAKER, _CALL, _CALL + _TURN, 1, 1, 12)

    def __init__(self, model: str = "", *, encoding: str | None = None) -> None:
        check_option("model", model, str)
        check_text("model", model)
        check_option("encoding", encoding, str | None)
        if encoding is not None and encoding not in ENCODINGS:
            reason = f"{encoding!r} is unknown"
            raise OptionError("encoding", reason, f"Use one of: {', '.join(sorted(ENCODINGS))}.")
        name, note = (encoding, "") if encoding else find_encoding(model)
        try:
            source = find_encoding_package(name)
        except MissingExtraError:
            if encoding or name == BASE:
                raise
            source, note = find_encoding_package(BASE), f"no ranks of {name} are at hand: {BASE} taken"
            name = BASE
        self.model = model
        self.encoding = name
        self.source = source
        self._note = (note,) if note else ()
        self._texts = TextCounts(self._count)
        self._prices = MediaPrices(model)

    @property
    def key(self) -> object:
        """Counters of one encoding and one model weigh alike."""
        return weight_key(type(self), self.encoding, self.model)

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return (partial(type(self), self.model, encoding=None if self._note else self.encoding), ())

    @cached_property
    def _encode(self) -> Count:
        return load_encoding(self.encoding)

    def _count(self, text: str) -> int:
        return self._encode(text)

    async def prepare(self) -> None:
        """Load the ranks off the event loop."""
        await anyio.to_thread.run_sync(self._count, "")

    async def count(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """`measure`, off the event loop while there is much to count."""
        await self.prepare()
        new = sum(
            len(text)
            for text in RequestParts.of(request, find_layout(self, provider)).texts
            if text not in self._texts
        )
        if new > _MUCH:
            return await anyio.to_thread.run_sync(self.measure, request, provider)
        return self.measure(request, provider)

    def measure(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """The tokens of the whole request."""
        parts, count = RequestParts.of(request, find_layout(self, provider)), self._texts.__getitem__
        total = _REPLY + _TURN * parts.turns + _SPEAKER * parts.speakers + _CALL * parts.calls
        total += sum(map(count, parts.texts)) + _FIELD * parts.fields
        total += sum(map(count, map(compact_json, parts.settings)))
        reasons = list(self._note)
        if parts.tools:
            total += _TOOLS + sum(count(tool_text(tool, parts.layout)) for tool in parts.tools)
        if parts.tools or parts.calls or parts.settings:
            reasons.append(_CALLS)
        media, unsure = self._prices.total(parts.media)
        total, reasons = total + media, [*reasons, *unsure]
        if parts.sealed:
            total += sum(len(sealed) * 3 // 16 for sealed in parts.sealed)
            reasons.append("encrypted thoughts are estimated by their length")
        return TokenCount(total, reasons)

    def weigh(self, msg: Msg) -> int:
        """The tokens of one message with its frame, thinking left out."""
        return self.by_texts(msg)

    def price(self, block: MediaBlock) -> int:
        """The price of a medium by the model's rule."""
        source = block.source
        data = source.url if isinstance(source, URLSource) else source.data
        return self._prices.price(MediaPart(block.type, data))[0]


def tool_text(tool: Any, layout: WireLayout) -> str:
    """Returns a tool as models read it: a TypeScript type after its description (the cookbook); others as JSON."""
    if not isinstance(tool, dict):
        return compact_json(tool)
    found = cast("dict[str, Any]", tool)
    for key in layout.tool_lists:
        if isinstance(found.get(key), list):
            return "\n".join(tool_text(inner, layout) for inner in found[key])
    wrapped: dict[str, Any] = as_object(found.get(layout.tool_wrapper))
    function = wrapped or found
    if not isinstance(function.get("name"), str):
        return compact_json(found)
    schema = next(filter(_is_object, map(function.get, layout.tool_schemas)), None)
    about = _comment(function.get("description"))
    return f"{about}type {function['name']} = (_: {_type(schema)}) => any;\n"


def _is_object(found: object) -> bool:
    return isinstance(found, dict)


def _comment(text: object) -> str:
    return f"// {text}\n" if text else ""


def _type(schema: Any) -> str:
    """A JSON schema as a type."""
    if not isinstance(schema, dict):
        return "any"
    found = cast("dict[str, Any]", schema)
    if isinstance(found.get("properties"), dict):
        required = found.get("required") or ()
        fields = cast("dict[str, Any]", found["properties"]).items()
        lines = [_field(name, inner, name in required) for name, inner in fields]
        return "{\n" + "".join(lines) + "}" + (f" {compact_json(found['$defs'])}" if "$defs" in found else "")
    if isinstance(found.get("enum"), list):
        return " | ".join(map(compact_json, found["enum"]))
    if found.get("type") == "array":
        return f"{_type(found.get('items'))}[]"
    plain = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "object": "object"}
    return plain.get(str(found.get("type"))) or compact_json(found)


def _field(name: str, schema: Any, required: bool) -> str:
    about = _comment(cast("dict[str, Any]", schema).get("description")) if isinstance(schema, dict) else ""
    return f"{about}{name}{'' if required else '?'}: {_type(schema)},\n"
