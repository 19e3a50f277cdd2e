"""Tool results of the types of the MCP SDK become blocks: every kind of content, as object and as dict."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from agentkit import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
)

mcp: Any = import_module("mcp_types")

CONTENT: list[tuple[Any, Any]] = [
    (mcp.TextContent(text="calm"), TextBlock("calm")),
    (
        mcp.TextContent(text="calm", annotations=mcp.Annotations(audience=["user"])),
        TextBlock("calm", metadata={"annotations": {"audience": ["user"]}}),
    ),
    (
        mcp.ImageContent(data="iVBORw0KGgo=", mime_type="image/png"),
        ImageBlock(Base64Source("image/png", "iVBORw0KGgo=")),
    ),
    (mcp.AudioContent(data="UklGRg==", mime_type="audio/wav"), AudioBlock(Base64Source("audio/wav", "UklGRg=="))),
    (
        mcp.EmbeddedResource(resource=mcp.TextResourceContents(uri="file:///a.txt", text="hello")),
        TextBlock("Resource file:///a.txt:\nhello", metadata={"uri": "file:///a.txt"}),
    ),
    (
        mcp.EmbeddedResource(
            resource=mcp.BlobResourceContents(uri="file:///a.pdf", mime_type="application/pdf", blob="JVBERi0=")
        ),
        DocumentBlock(
            Base64Source("application/pdf", "JVBERi0="),
            title="file:///a.pdf",
            metadata={"uri": "file:///a.pdf", "mimeType": "application/pdf"},
        ),
    ),
    (
        mcp.ResourceLink(uri="file:///b", name="b", mime_type="text/plain"),
        TextBlock("Resource link b: file:///b (text/plain)"),
    ),
]


@pytest.mark.parametrize(("item", "block"), CONTENT, ids=[type(item).__name__ for item, _ in CONTENT])
@pytest.mark.parametrize("is_error", [False, True])
@pytest.mark.anyio
async def test_each_kind_of_content(item: Any, block: Any, is_error: bool) -> None:
    native = mcp.CallToolResult(content=[item, mcp.TextContent(text="end")], is_error=is_error)
    expected = ToolResultBlock("c", "give", [block, TextBlock("end")], is_error=is_error)
    dumped = native.model_dump(mode="json", by_alias=True, exclude_none=True)
    for variant in (native, dumped, native.model_dump(), native.model_dump(exclude_none=True)):
        assert ToolResultBlock("c", "give", variant) == expected
        result = await Tool("give", function=lambda variant=variant: variant).run(ToolUseBlock("c", "give", {}))
        assert result == expected
    assert ToolResultBlock("c", "give", native.content, is_error=is_error) == expected


def test_structured_content_of_any_kind_is_sent_once() -> None:
    for value in ({"a": 1}, [1, 2], "text", 3, None):
        native = mcp.CallToolResult(content=[], structured_content=value)
        sent = ToolResultBlock("c", "give", native).output
        again = mcp.CallToolResult(content=[mcp.TextContent(text=sent)], structured_content=value)
        assert ToolResultBlock("c", "give", again).output == sent


def test_every_kind_of_content_is_in_the_table() -> None:
    assert set(mcp.ContentBlock.__args__) == {type(item) for item, _ in CONTENT}
