"""A third-party API whose turns are under `dialogue`.

Prefix digests, token counts, places of errors and request options come from its layout.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from agentkit import (
    Base64Source,
    CharacterTokenCounter,
    ImageBlock,
    MessageError,
    Msg,
    OptionError,
    TextBlock,
    Tool,
    ToolChoice,
    list_cache_markers,
    list_server_tools,
    load_provider,
    load_request_options,
    prefix_digest,
)
from agentkit.messages.log_checks import check_log_message
from agentkit.models.error_location import locate_block
from agentkit.provider_kit import (
    Capabilities,
    FormatterBase,
    LegalConversation,
    MediaCapabilities,
    MediaPart,
    MediaRule,
    OptionLayout,
    OutputSchema,
    Request,
    RequestParts,
    RequestSpec,
    WireLayout,
    media_types,
)

DIALOGUE = Capabilities(
    name="Dialogue",
    layout=WireLayout(
        turns="dialogue",
        tools="abilities",
        tool_wrapper="ability",
        tool_schemas=("takes",),
        parts=("lines",),
        type="sort",
        role="who",
        labels=frozenset({"who", "sort"}),
        texts=frozenset({"words"}),
        media={"picture": "image"},
        options=OptionLayout(
            function_types=frozenset({"mine"}),
            choices=("use.ability",),
            outputs=("answer.shape",),
        ),
        cache_markers=frozenset({"keep"}),
    ),
    media=MediaCapabilities(image=MediaRule(types=media_types("image", "png"))),
)


class DialogueFormatter(FormatterBase):
    base: ClassVar[Capabilities] = DIALOGUE

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        return {"dialogue": [_turn(msg) for msg in (*legal.system.msgs, *legal.turns.msgs)]}


def _turn(msg: Msg) -> dict[str, Any]:
    return {"who": msg.role, "lines": [_line(block) for block in msg.blocks]}


def _line(block: object) -> dict[str, Any]:
    if isinstance(block, ImageBlock) and isinstance(block.source, Base64Source):
        return {"sort": "picture", "picture": block.source.data}
    assert isinstance(block, TextBlock)
    return {"sort": "words", "words": block.text}


FORMATTER = DialogueFormatter()
PICTURE = ImageBlock(Base64Source("image/png", "iVBORw0KGgoAAAAN" * 25_000))
MSGS = [
    Msg("system", "Be brief.", "system"),
    Msg("Bob", (TextBlock("What is this?"), PICTURE), "user"),
    Msg("Friday", "A lake.", "assistant"),
    Msg("Bob", "Which lake?", "user"),
]


def test_the_digest_covers_the_turns_without_cache_markers() -> None:
    request = FORMATTER.lower(MSGS).request
    digest = prefix_digest(request, FORMATTER)
    assert digest == prefix_digest(request, DIALOGUE.layout) != prefix_digest({}, FORMATTER)
    request["dialogue"][1]["lines"][0]["keep"] = True
    assert prefix_digest(request, FORMATTER) == digest
    request["dialogue"][1]["lines"][0]["words"] = "What is that?"
    assert prefix_digest(request, FORMATTER) != digest


def test_an_image_of_400_kb_counts_as_one_image() -> None:
    request = FORMATTER.lower(MSGS).request
    assert 1_000 < CharacterTokenCounter().measure(request, FORMATTER) < 1_100


def test_a_media_key_of_another_api_counts_as_text() -> None:
    url = "data:video/mp4;base64,AAAAGGZ0eXBtcDQy"
    request = {"messages": [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": url}}]}]}
    compatible = RequestParts.of(request, load_provider("dashscope-compatible"))
    assert (compatible.texts, compatible.media) == ([], [MediaPart("video", url)])
    native = RequestParts.of(request, load_provider("dashscope"))
    assert (native.texts, native.media) == ([url], [])


@pytest.mark.parametrize("paths", [("source.bytes",), ("source.uri", "source.bytes")])
def test_a_path_leads_to_the_data_of_a_nested_media_object(paths: tuple[str, ...]) -> None:
    layout = replace(DIALOGUE.layout, media_data=paths)
    picture = {"picture": {"sort": "png", "source": {"bytes": "iVBORw0KGgo"}}}
    request = {"dialogue": [{"who": "user", "lines": [picture]}]}
    assert RequestParts.of(request, layout).media == [MediaPart("image", "iVBORw0KGgo")]


@pytest.mark.parametrize(
    ("error", "place"),
    [
        ("dialogue[1].lines[1].picture: not an image", "msgs[1].content[1]"),
        ("dialogue.3.lines.0 is too short", "msgs[3].content[0]"),
        ("messages[1]: bad", ""),
    ],
)
def test_an_error_leads_to_the_block(error: str, place: str) -> None:
    assert locate_block(error, FORMATTER.lower(MSGS).request, FORMATTER.layout, MSGS) == place


def test_options_cache_markers_and_server_tools_load() -> None:
    schema = {"type": "object", "properties": {"place": {"type": "string"}}}
    request = FORMATTER.lower(MSGS).request | {
        "abilities": [
            {"sort": "mine", "ability": {"name": "look", "takes": schema}, "keep": True},
            {"sort": "search"},
            {"keep": {"sort": "here"}},
        ],
        "use": {"ability": {"name": "look"}},
        "answer": {"shape": schema},
    }
    for provider in (FORMATTER, DIALOGUE.layout):
        assert load_request_options(provider, request) == {
            "tools": [Tool("look", "", schema)],
            "tool_choice": ToolChoice("tool", "look"),
            "response_format": OutputSchema(schema),
        }
        assert list_server_tools(provider, request) == [("abilities[1]", "search")]
        assert list_cache_markers(provider, request) == ["abilities[0]", "abilities[2]"]


@pytest.mark.parametrize("text", ['{"type": "object", "title": "t"}', '{"type": "text"}', "json", "{"])
def test_an_output_schema_may_be_json_text(text: str) -> None:
    layout = WireLayout(options=OptionLayout(outputs=("format.schema",)))
    options = load_request_options(layout, {"messages": [], "format": {"schema": text}})
    expected = {"response_format": OutputSchema({"type": "object", "title": "t"})} if "title" in text else {}
    assert options == expected


def test_a_tool_choice_that_is_a_text_can_be_converted() -> None:
    options = OptionLayout(choices=("use",), read_choice=str.lower)
    layout = WireLayout(turns="dialogue", options=options)
    request = {"tools": [{"name": "look", "parameters": {"type": "object"}}], "use": "REQUIRED"}
    assert load_request_options(layout, request).get("tool_choice") == ToolChoice("required")


def test_the_loader_of_another_distribution_can_share_keys_with_an_existing_format() -> None:
    message = {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
    }
    check_log_message(message, "messages[0]", ("content",), loaders="elsewhere")
    with pytest.raises(MessageError, match="OpenAI Chat messages"):
        check_log_message(message, "messages[0]", ("content",), loaders="anthropic")


def test_a_request_of_unknown_layout_is_an_error() -> None:
    with pytest.raises(
        OptionError, match="missing, so CharacterTokenCounter cannot find the parts of the request"
    ):
        CharacterTokenCounter().measure({"dialogue": []})
    with pytest.raises(
        OptionError, match=r"layout: expected a provider, a formatter or a WireLayout, got 'dialogue'"
    ):
        prefix_digest({"dialogue": []}, "dialogue")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
