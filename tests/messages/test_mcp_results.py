"""Results of the Model Context Protocol, as SDK objects and as dicts, become blocks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from pydantic import AnyUrl, BaseModel, ConfigDict, Field

from agentkit import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    InvalidBlock,
    MessageError,
    Msg,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    dump_messages,
    load_messages,
    load_provider,
)
from tests.cases import each_case
from tests.providers import MESSAGE_PROVIDERS

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
BLOB = {"uri": "file:///report.pdf", "mimeType": "application/pdf", "blob": "JVBERi0xLjQK"}
ITEMS: list[tuple[dict[str, Any], Any]] = [
    ({"type": "text", "text": "calm"}, TextBlock("calm")),
    (IMAGE, ImageBlock(Base64Source("image/png", PNG))),
    (
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        AudioBlock(Base64Source("audio/wav", "UklGRg==")),
    ),
    (
        {"type": "resource", "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "12 degrees"}},
        TextBlock(
            "Resource file:///a.txt:\n12 degrees", metadata={"uri": "file:///a.txt", "mimeType": "text/plain"}
        ),
    ),
    (
        {"type": "resource", "resource": BLOB},
        DocumentBlock(
            Base64Source("application/pdf", "JVBERi0xLjQK"),
            title="file:///report.pdf",
            metadata={"uri": "file:///report.pdf", "mimeType": "application/pdf"},
        ),
    ),
    (
        {"type": "resource", "resource": {"uri": "file:///a.png", "blob": PNG}},
        ImageBlock(Base64Source("image/png", PNG), metadata={"uri": "file:///a.png"}),
    ),
    (
        {"type": "resource_link", "uri": "file:///b.md", "name": "b", "description": "Tides.", "size": 40},
        TextBlock("Resource link b: file:///b.md (40 bytes)\nTides."),
    ),
]


class TextContent(BaseModel):
    """Result class of version 1 of the Python SDK."""

    type: Literal["text"] = "text"
    text: str
    meta: dict[str, Any] | None = Field(alias="_meta", default=None)
    model_config = ConfigDict(extra="allow")


class TextResource(BaseModel):
    uri: AnyUrl
    mimeType: str | None = None  # noqa: N815
    text: str


class EmbeddedResource(BaseModel):
    type: Literal["resource"] = "resource"
    resource: TextResource


class CallToolResult(BaseModel):
    content: list[TextContent | EmbeddedResource]
    structuredContent: dict[str, Any] | None = None  # noqa: N815
    isError: bool = False  # noqa: N815
    meta: dict[str, Any] | None = Field(alias="_meta", default=None)


@dataclass
class ClientResult:
    """Result class of a client library: a dataclass with objects of the SDK."""

    content: list[Any]
    structured_content: dict[str, Any] | None = None
    is_error: bool = False
    data: Any = field(default=None)


async def run_tool(value: Any) -> ToolResultBlock:
    """Returns the result of a tool whose function returns a value."""

    def give() -> Any:
        return value

    return await Tool("give", function=give).run(ToolUseBlock("c", "give", {}))


@pytest.mark.anyio
@each_case(("item", "block"), ITEMS)
async def test_each_type_of_content_becomes_a_block(item: dict[str, Any], block: Any) -> None:
    result = {"content": [item, {"type": "text", "text": "end"}], "isError": False}
    expected = ToolResultBlock("c", "give", [block, TextBlock("end")])
    assert ToolResultBlock("c", "give", result) == expected
    assert await run_tool(result) == expected
    assert await run_tool({"content": [item, {"type": "text", "text": "end"}]}) == expected
    assert await run_tool(result["content"]) == expected


@pytest.mark.anyio
async def test_a_single_text_is_the_output() -> None:
    assert ToolResultBlock("c", "give", {"content": [{"type": "text", "text": "calm"}]}).output == "calm"
    assert (await run_tool({"content": [{"type": "text", "text": "calm"}], "isError": True})).is_error
    assert (await run_tool({"content": [], "isError": True})) == ToolResultBlock("c", "give", "", is_error=True)


@each_case("provider", MESSAGE_PROVIDERS)
def test_base64_never_reaches_a_request_as_text(provider: str) -> None:
    content = [item for item, _ in ITEMS]
    result = ToolResultBlock("c", "give", {"content": content, "isError": False})
    msgs = [Msg("Bob", "go", "user"), Msg("Friday", [ToolUseBlock("c", "give", {})], "assistant")]
    formatter = load_provider(provider).chat_formatter()
    request = formatter.lower([*msgs, Msg("tools", [result], "user")]).request
    texts = [text for text in _strings(request) if PNG in text and not text.startswith("data:") and text != PNG]
    assert texts == []
    assert any("calm" in text for text in _strings(request))
    assert any("12 degrees" in text for text in _strings(request))


def _strings(request: dict[str, Any]) -> list[str]:
    """Yields the strings of a request as JSON text."""
    return re.findall(r'"((?:[^"\\]|\\.)*)"', json.dumps(request))


# -- structured content -------------------------------------------------------------------------------------------

STRUCTURED = {"degrees": 12, "sky": ["rain", "wind"]}


@each_case(
    ("texts", "structured"),
    [
        ([json.dumps(STRUCTURED)], STRUCTURED),
        ([json.dumps(STRUCTURED, indent=2, sort_keys=True)], STRUCTURED),
        (["It rains.", json.dumps(STRUCTURED)], STRUCTURED),
        (["12"], {"result": 12}),
        (["calm"], {"result": "calm"}),
        (["a", "b"], {"result": ["a", "b"]}),
        (['["a","b"]'], {"result": ["a", "b"]}),
        (['{"result": 3}'], {"result": 3}),
        (["[1]"], [1]),
    ],
)
def test_structured_content_that_the_text_repeats_is_sent_once(texts: list[str], structured: Any) -> None:
    content = [{"type": "text", "text": text} for text in texts]
    result = ToolResultBlock("c", "give", {"content": content, "structuredContent": structured})
    assert [item.text for item in result.items if isinstance(item, TextBlock)] == texts


@each_case(
    ("texts", "structured"),
    [
        ([], STRUCTURED),
        (["It rains."], STRUCTURED),
        (["{not json"], {"result": 12}),
        (["a"], {"result": ["a", "b"]}),
        (["true"], {"result": 1}),
        (["[" * 100_000], {"result": 1}),
    ],
)
def test_structured_content_that_differs_from_the_text_is_added(texts: list[str], structured: Any) -> None:
    content = [{"type": "text", "text": text} for text in texts]
    result = ToolResultBlock("c", "give", {"content": content, "structuredContent": structured})
    *before, last = [item.text for item in result.items if isinstance(item, TextBlock)]
    assert before == texts
    assert json.loads(last) == structured


# -- shapes -------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_sdk_objects_convert_like_their_dicts() -> None:
    resource = EmbeddedResource(resource=TextResource(uri=AnyUrl("file:///a.txt"), text="hello"))
    call_result = CallToolResult(content=[TextContent(text="calm"), resource], isError=True, _meta={"trace": 1})
    expected = ToolResultBlock(
        "c",
        "give",
        [TextBlock("calm"), TextBlock("Resource file:///a.txt:\nhello", metadata={"uri": "file:///a.txt"})],
        is_error=True,
        metadata={"_meta": {"trace": 1}},
    )
    forms: list[Any] = [
        call_result,
        call_result.model_dump(mode="json", by_alias=True),
        call_result.model_dump(by_alias=True),
        call_result.model_dump(),
    ]
    for variant in forms:
        assert ToolResultBlock("c", "give", variant) == expected
        assert await run_tool(variant) == expected
    client = ClientResult(call_result.content, is_error=True)
    assert ToolResultBlock("c", "give", client).output == expected.output
    assert ToolResultBlock("c", "give", call_result.content).output == expected.output
    assert await run_tool(call_result.content[0]) == ToolResultBlock("c", "give", [TextBlock("calm")])


def test_arguments_beside_an_mcp_result_are_kept() -> None:
    mcp: dict[str, Any] = {"content": [], "isError": False, "_meta": {"a": 1}}
    result = ToolResultBlock("c", output=mcp, is_error=True, metadata={"b": 2})
    assert result.is_error
    assert result.metadata == {"_meta": {"a": 1}, "b": 2}
    assert load_messages(dump_messages([Msg("t", [result], "user")])) == [Msg("t", [result], "user")]


@pytest.mark.anyio
@each_case(
    "value",
    [
        {"content": "a page of text", "title": "x"},
        {"content": [{"type": "text", "text": "x"}], "page": 2},
        {"content": [{"type": "paragraph", "text": "x"}]},
        {"content": []},
        {"content": [1, 2]},
        {"isError": False},
        [{"type": "text", "text": "x", "score": 1}],
        {"type": "text", "text": "x", "score": 1},
        {"type": "image", "url": "https://example.com/a.png"},
    ],
)
async def test_other_json_with_the_same_keys_is_not_an_mcp_result(value: Any) -> None:
    result = await run_tool(value)
    assert not result.is_error
    assert json.loads(result.text) == value
    with pytest.raises(MessageError, match="output"):
        ToolResultBlock("c", "give", value)


@pytest.mark.anyio
@each_case(
    "item",
    [
        {"type": "text"},
        {"type": "image", "data": 3, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": None, "blob": PNG}},
        {"type": "hologram", "data": PNG},
        {},
        3,
        None,
    ],
)
async def test_an_unreadable_item_becomes_an_invalid_block(item: Any) -> None:
    result = await run_tool({"content": [item, "calm", {"type": "text", "text": "a \ud800"}], "isError": True})
    assert result.is_error
    first, *texts = result.items
    assert isinstance(first, InvalidBlock)
    assert (first.data, first.place) == (item, "content[0]")
    assert texts == [TextBlock("calm"), TextBlock("a \N{REPLACEMENT CHARACTER}")]


@pytest.mark.anyio
@each_case(
    "item",
    [
        {"type": "image", "data": "!!!", "mimeType": "image/png"},
        {"type": "image", "data": "", "mimeType": ""},
        {"type": "image", "data": "data:", "mimeType": "x"},
        {"type": "audio", "data": f"data:image/png;base64,{PNG}", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "", "blob": "\ud800"}},
        {"type": "resource_link", "uri": "", "name": "", "size": "many", "mimeType": 3},
    ],
)
@each_case("provider", MESSAGE_PROVIDERS)
async def test_broken_media_still_gives_a_request(provider: str, item: dict[str, Any]) -> None:
    result = await run_tool({"content": [item], "isError": False})
    msgs = [Msg("Bob", "go", "user"), Msg("Friday", [ToolUseBlock("c", "give", {})], "assistant")]
    plan = load_provider(provider).chat_formatter().lower([*msgs, Msg("tools", [result], "user")])
    json.dumps(plan.request).encode()


class Hostile:
    """Object whose attributes all raise an exception."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.anyio
async def test_an_object_whose_attributes_raise_is_an_error() -> None:
    assert (await run_tool(Hostile())).is_error
    assert (await run_tool([Hostile()])).is_error
    value: Any = Hostile()
    with pytest.raises(MessageError, match="output"):
        ToolResultBlock("c", "give", value)


def test_endless_nesting_is_truncated() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    result = ToolResultBlock("c", "give", {"content": [], "structuredContent": deep})
    assert "nested too deeply" in result.text
