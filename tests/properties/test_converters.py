"""A converter converts blocks that its default capabilities exclude, or raises an error.

A subclass may change the capabilities. Content that the ledger records as carried is then in the request, or
`ConversionError` names the kind of block and the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, Final

import pytest

from agentkit import (
    AudioBlock,
    Base64Source,
    Block,
    ConversionError,
    Disposition,
    DocumentBlock,
    ImageBlock,
    Msg,
    MultiAgentHistory,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
    load_provider,
)
from agentkit.provider_kit import Capabilities, FormatterBase, MediaRule
from tests.cases import each_case
from tests.providers import MESSAGE_PROVIDERS, MP4, PDF, PNG, WAV

PROVIDERS: Final = MESSAGE_PROVIDERS
KINDS: Final = frozenset({"image", "audio", "video", "document"})
ANY: Final = MediaRule(schemes=frozenset({"https", "http"}))

ALL_CAPABILITIES: Final[dict[str, Any]] = {
    # Capabilities of the subclass: all media, also by URL, in any turn and in results.
    **{f"media.{kind}": ANY for kind in KINDS},
    "media.roles": frozenset({"user", "assistant", "system"}),
    "media.result_kinds": KINDS,
    "media.result_types": frozenset(),
    "thinking.mode": "text",
    "turns.late_system": "native",
    "media.error_results": True,
    "thinking.required_proof": frozenset(),
    "opaque.pair_key": None,
    "opaque.needs_thinking": None,
    "opaque.is_reply_data": None,
    "tools.needs_declarations": False,
    "media.total": 0,
}
SHAPES: Final[dict[str, dict[str, Any]]] = {
    "as they are": {},
    "joined": {"tools.results": "together", "turns.merge": True, "tools.results_in_order": True},
    "one string": {"turns.text_joining": "string"},
    "glued": {"turns.text_joining": "glued", "turns.one_system": True},
}


def _create_formatter_class(provider: str, shape: str, *, multi: bool) -> type[FormatterBase]:
    package = load_provider(provider)
    formatter_class = package.multi_agent_formatter if multi else package.chat_formatter
    base = formatter_class.base

    class WideFormatter(formatter_class):  # type: ignore[misc, valid-type]
        pass

    capabilities: Capabilities = base.override(
        {**ALL_CAPABILITIES, **SHAPES[shape], "wire": base.wire or "custom"}
    )
    WideFormatter.base, WideFormatter.facts = capabilities, ()
    return WideFormatter


URL: Final = "https://x.org/unique-token.bin"
DATA: Final = {"image": PNG, "audio": WAV, "video": MP4, "document": PDF}


def _create_blocks(issuer: str | None, wire: str | None) -> dict[str, Block]:
    """Returns blocks with unique content by name, for an API with this issuer and wire format."""
    kinds: dict[str, Any] = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock}
    types = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "document": "application/pdf"}
    kinds["document"] = DocumentBlock
    media = {f"{name} by URL": kind(URLSource(URL, types[name])) for name, kind in kinds.items()}
    media |= {f"{name} as data": kind(Base64Source(types[name], DATA[name])) for name, kind in kinds.items()}
    state = OpaqueState(issuer, signature="cHJvb2Y=") if issuer else None
    return {
        "text": TextBlock("unique-token"),
        "thinking": ThinkingBlock("unique-token", state),
        "opaque": OpaqueBlock(str(wire), {"type": "input_new", "unique-token": 1}),
        **media,
    }


def _create_msgs(place: str, block: Any) -> list[Msg]:
    """Returns a conversation with `block` at a place. Every target accepts the other blocks."""
    text = TextBlock("Hi.")
    question, reply = Msg("Bob", "Go.", "user"), Msg("Friday", "Yes.", "assistant")
    call = Msg("Friday", [ToolUseBlock("call_1", "look", {})], "assistant")
    result = Msg("tool", [ToolResultBlock("call_1", "look", "A.")], "system")
    if place == "result":
        result = Msg("tool", [ToolResultBlock("call_1", "look", [text, block])], "system")
        return [question, call, result, Msg("Bob", "On.", "user")]
    if place == "failed result":
        result = Msg("tool", [ToolResultBlock("call_1", "look", [text, block], is_error=True)], "system")
        return [question, call, result]
    if place == "user after results":
        return [question, call, result, Msg("Bob", [text, block], "user")]
    if place == "assistant":
        return [question, Msg("Friday", [block, text], "assistant"), question]
    if place == "assistant with a call":
        return [question, Msg("Friday", [block, ToolUseBlock("call_1", "look", {})], "assistant"), result]
    if place == "system":
        return [Msg("system", [text, block], "system"), question]
    if place == "late system":
        return [question, reply, Msg("system", [text, block], "system"), question]
    return [Msg("Bob", [text, block], "user")]


PLACES: Final = (
    *("user", "assistant", "assistant with a call", "system", "late system", "result", "failed result"),
    "user after results",
)
NAMES: Final = (
    "text",
    "thinking",
    "opaque",
    *(f"{kind} {way}" for kind in KINDS for way in ("by URL", "as data")),
)


@cache
def _create_conversations(issuer: str | None, wire: str | None) -> list[tuple[str, str, Block, list[Msg]]]:
    """Returns each block at each place: its name, the place, the block, and the conversation."""
    return [
        (name, place, block, _create_msgs(place, block))
        for place in PLACES
        for name, block in _create_blocks(issuer, wire).items()
        if name != "thinking" or "result" not in place or place == "user after results"  # no result has thinking
    ]


def _contains(block: Block, request: Any) -> bool:
    return any(token in repr(request) for token in ("unique-token", DATA.get(block.type, "unique-token")))


def _list_variants() -> Iterator[tuple[str, str, bool]]:
    """Yields each provider with all shapes and both formatters.

    Of the providers that share the converter of another provider, each has only two of these variants.
    """
    variants = [*product(SHAPES, (False, True))]
    converters = [load_provider(name).chat_formatter.convert for name in PROVIDERS]
    for index, (name, converter) in enumerate(zip(PROVIDERS, converters, strict=True)):
        is_first = converters.index(converter) == index
        chosen = variants if is_first else [variants[(index + step) % len(variants)] for step in (0, 3)]
        yield from ((name, *variant) for variant in chosen)


@each_case(("provider", "shape", "multi"), _list_variants())
def test_carried_content_is_in_the_request_or_an_error_names_it(provider: str, shape: str, multi: bool) -> None:
    kind = _create_formatter_class(provider, shape, multi=multi)
    formatter = kind(history=MultiAgentHistory(viewer="Friday")) if multi else kind()
    refused = 0
    for name, place, block, msgs in _create_conversations(kind.base.issuer, kind.base.wire):
        try:
            plan = formatter.lower(msgs)
        except ConversionError:
            refused += 1
            continue
        if not _contains(block, plan.request):
            dropped = [entry for entry in plan.ledger.entries if entry.disposition is Disposition.DROPPED]
            lost = plan.ledger.losses
            assert dropped or lost, f"{provider}: {name} in {place} vanished"
    assert refused < len(PLACES) * len(NAMES) * 3 / 4


def test_a_subclass_of_the_ollama_formatter_that_accepts_urls_sends_them() -> None:
    kind = _create_formatter_class("ollama", "as they are", multi=False)
    plan = kind().lower([Msg("Bob", [TextBlock("See:"), ImageBlock(URLSource(URL))], "user")])
    assert plan.request["messages"] == [{"role": "user", "content": "See:\n[image 1]", "images": [URL]}]


def test_a_subclass_of_the_ollama_formatter_that_accepts_images_in_results_sends_them() -> None:
    kind = _create_formatter_class("ollama", "as they are", multi=False)
    image = ImageBlock(Base64Source("image/png", PNG))
    message = kind().lower(_create_msgs("result", image)).request["messages"][2]
    assert (message["content"], message["images"]) == ("Hi.\n[image 1]", [PNG])


def test_a_chat_completions_vendor_without_a_reasoning_field_receives_no_thinking() -> None:
    kind = _create_formatter_class("openai", "as they are", multi=False)
    with pytest.raises(ConversionError, match="accept a block of type 'thinking' here"):
        kind().lower(_create_msgs("assistant", ThinkingBlock("Hm.", OpaqueState("openai"))))
