"""`TiktokenCounter`: counts the texts of a request with the encoding of the model.

The counts of texts are exact. The chat format adds further tokens. Their numbers for messages, speaker names and
tools come from OpenAI's cookbook, and the number for each tool call is an estimate.
`agentkit.tokens.model_encodings` has the encoding of each model. `agentkit.tokens.encodings` finds the package
that has the vocabulary of the encoding.
"""

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
from agentkit.reprs import shorten_repr
from agentkit.tokens.counters import TokenCount, find_layout, weight_key
from agentkit.tokens.encodings import Count, find_encoding_package, load_encoding
from agentkit.tokens.estimate import TextCounts
from agentkit.tokens.media_tokens import MediaPrices
from agentkit.tokens.model_encodings import BASE, ENCODINGS, find_encoding
from agentkit.tokens.request_parts import MediaPart, RequestParts, compact_json
from agentkit.tokens.text_counters import Overheads, TextTokenCounter

__all__ = ["TiktokenCounter"]

# Numbers of tokens that the chat format adds to each message, reply, name and tool.
# Source: OpenAI's cookbook, how_to_count_tokens_with_tiktoken.
_TURN: Final = 3
_REPLY: Final = 3
_SPEAKER: Final = 1
_TOOLS: Final = 9
_CALL: Final = 5  # a tool call has 3 to 7 tokens in addition to its name and arguments
_FIELD: Final = 2  # number of tokens of the quotes, colon and comma around a JSON key
_CALLS = "the number of tokens around tool calls and tool definitions is not published"
_MANY: Final = 200_000  # in characters; longer texts are counted in a worker thread, because counting takes time


class TiktokenCounter(TextTokenCounter):
    """Local counter that uses the encoding of a model. The requests may be for any provider.

    The counts of texts are exact. The count of an image is exact if its data is in the request and the model
    family has a published rule. `TokenCount.estimated` names the parts that are estimates.

    The vocabulary of the encoding comes from tiktoken if tiktoken's cache folder contains the vocabulary, and
    otherwise from splintr. Nothing is downloaded. The vocabulary is loaded at the first use. To load the
    vocabulary earlier in a worker thread, call `await counter.prepare()`.

    Attributes:
        model: Model that the requests are for.
        encoding: Name of the encoding.
        source: Package that encodes texts: "tiktoken" or "splintr".
    """

    slow: ClassVar[bool] = True
    overheads: ClassVar[Overheads] = Overheads(_TURN + _SPEAKER, _CALL, _CALL + _TURN, 1, 1, 12)

    def __init__(self, model: str = "", *, encoding: str | None = None) -> None:
        """Finds the encoding of the model, and an installed package that has the vocabulary of the encoding.

        Args:
            model: Model that the requests are for. The model decides the encoding and how many tokens an image
                costs.
            encoding: Encoding to use instead of the model's encoding, such as `o200k_base`, `qwen3` or
                `deepseek_v3`. If None, the model decides.

        Raises:
            OptionError: `encoding` is unknown, or an argument has a wrong type.
            MissingExtraError: No installed package has the vocabulary of the encoding.
        """
        check_option("model", model, str)
        check_text("model", model)
        check_option("encoding", encoding, str | None)
        if encoding is not None and encoding not in ENCODINGS:
            reason = f"no encoding has the name {shorten_repr(encoding, 40)}"
            raise OptionError("encoding", reason, f"Pass one of: {', '.join(sorted(ENCODINGS))}.")
        name, note = (encoding, "") if encoding else find_encoding(model)
        try:
            source = find_encoding_package(name)
        except MissingExtraError:
            if encoding or name == BASE:
                raise
            source, note = (
                find_encoding_package(BASE),
                f"the vocabulary of {name} is not available; tokens counted with {BASE}",
            )
            name = BASE
        self.model = model
        self.encoding = name
        self.source = source
        self._note = (note,) if note else ()
        self._texts = TextCounts(self._count)
        self._prices = MediaPrices(model)

    @property
    def key(self) -> object:
        """Key under which messages cache the results of `weigh`. The key depends on the encoding and the model."""
        return weight_key(type(self), self.encoding, self.model)

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return (partial(type(self), self.model, encoding=None if self._note else self.encoding), ())

    @cached_property
    def _encode(self) -> Count:
        return load_encoding(self.encoding)

    def _count(self, text: str) -> int:
        return self._encode(text)

    async def prepare(self) -> None:
        """Loads the vocabulary of the encoding in a worker thread."""
        await anyio.to_thread.run_sync(self._count, "")

    async def count(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """Returns `measure(request, provider)`.

        `measure` runs in a worker thread if the texts without a cached count have more than 200,000 characters.
        """
        await self.prepare()
        new = sum(
            len(text)
            for text in RequestParts.of(request, find_layout(self, provider)).texts
            if text not in self._texts
        )
        if new > _MANY:
            return await anyio.to_thread.run_sync(self.measure, request, provider)
        return self.measure(request, provider)

    def measure(self, request: Mapping[str, Any], provider: LayoutSource | None = None) -> TokenCount:
        """Returns the number of tokens of a request (see `TextTokenCounter.measure`)."""
        parts, count = RequestParts.of(request, find_layout(self, provider)), self._texts.__getitem__
        total = _REPLY + _TURN * parts.turns + _SPEAKER * parts.speakers + _CALL * parts.calls
        total += sum(map(count, parts.texts)) + _FIELD * parts.fields
        total += sum(map(count, map(compact_json, parts.settings)))
        reasons = list(self._note)
        if parts.tools:
            total += _TOOLS + sum(count(write_tool(tool, parts.layout)) for tool in parts.tools)
        if parts.tools or parts.calls or parts.settings:
            reasons.append(_CALLS)
        media_tokens, media_reasons = self._prices.total(parts.media)
        total, reasons = total + media_tokens, [*reasons, *media_reasons]
        if parts.sealed:
            total += sum(len(sealed) * 3 // 16 for sealed in parts.sealed)
            reasons.append("the tokens of encrypted or base64 text are estimated from the length of the text")
        return TokenCount(total, reasons)

    def weigh(self, msg: Msg) -> int:
        """Returns the number of tokens of a message, with its speaker name but without its thinking blocks."""
        return self.weigh_texts(msg)

    def price(self, block: MediaBlock) -> int:
        """Returns the number of tokens that the model uses for a media block."""
        source = block.source
        data = source.url if isinstance(source, URLSource) else source.data
        return self._prices.price(MediaPart(block.type, data))[0]


def write_tool(tool: Any, layout: WireLayout) -> str:
    """Returns the text of a tool: a TypeScript type with comments.

    OpenAI's models read tools in this format (source: OpenAI's cookbook). A tool without a name, such as a tool
    that the provider runs, is written as JSON.
    """
    if not isinstance(tool, dict):
        return compact_json(tool)
    fields = cast("dict[str, Any]", tool)
    for key in layout.tool_lists:
        if isinstance(fields.get(key), list):
            return "\n".join(write_tool(inner, layout) for inner in fields[key])
    function: dict[str, Any] = as_object(fields.get(layout.tool_wrapper)) or fields
    if not isinstance(function.get(layout.name), str):
        return compact_json(fields)
    description, schema = _write_comment(function.get("description")), _write_type(layout.find_schema(function)[1])
    return f"{description}type {function[layout.name]} = (_: {schema}) => any;\n"


def _write_comment(text: object) -> str:
    return f"// {text}\n" if text else ""


def _write_type(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    rules = cast("dict[str, Any]", schema)
    if isinstance(rules.get("properties"), dict):
        required = rules.get("required") or ()
        fields = cast("dict[str, Any]", rules["properties"]).items()
        lines = [_write_field(name, inner, name in required) for name, inner in fields]
        return "{\n" + "".join(lines) + "}" + (f" {compact_json(rules['$defs'])}" if "$defs" in rules else "")
    if isinstance(rules.get("enum"), list):
        return " | ".join(map(compact_json, rules["enum"]))
    if rules.get("type") == "array":
        return f"{_write_type(rules.get('items'))}[]"
    return _TYPES.get(str(rules.get("type"))) or compact_json(rules)


_TYPES: Final = {
    "string": "string", "integer": "number", "number": "number", "boolean": "boolean", "object": "object",
}  # fmt: skip


def _write_field(name: str, schema: Any, required: bool) -> str:
    description = _write_comment(as_object(schema).get("description"))
    return f"{description}{name}{'' if required else '?'}: {_write_type(schema)},\n"
