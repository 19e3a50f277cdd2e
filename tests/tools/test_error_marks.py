"""Tool results for APIs without an error field."""

from __future__ import annotations

from agentkit import ImageBlock, TextBlock, Tool, ToolResultBlock
from agentkit.messages.blocks import Block
from agentkit.tools.error_marks import split_error_mark, write_output
from agentkit.tools.tool import declare_tool
from tests.cases import each_case


def _write_block(block: Block) -> str:
    return block.text if isinstance(block, TextBlock) else block.type


@each_case("text", ["", "Sunny.", "two\nlines", " blank first"])
@each_case("is_error", [False, True])
def test_the_error_mark_of_a_written_output_is_read_again(text: str, is_error: bool) -> None:
    output = write_output(ToolResultBlock("c1", "look", text, is_error), _write_block)
    assert isinstance(output, str)
    assert split_error_mark(output) == (text, is_error)


@each_case("text", ["[error] ", "[error]: no", "an [error]", "[error]\nno"])
def test_a_text_with_another_start_has_no_error_mark(text: str) -> None:
    assert split_error_mark(text) == (text, False)


def test_an_output_with_media_is_a_list_that_begins_with_the_error_mark() -> None:
    image = ImageBlock.from_url("https://example.com/a.png")
    result = ToolResultBlock("c1", "look", [TextBlock("See."), image], is_error=True)
    assert write_output(result, _write_block) == ["[error]", "See.", "image"]


def test_a_declaration_has_only_the_fields_of_the_tool() -> None:
    tool = Tool("look", "", {"type": "object", "properties": {}})
    assert declare_tool(tool, None) == {"name": "look"}
    assert declare_tool(Tool("look", "Looks."), "schema") == {
        "name": "look",
        "description": "Looks.",
        "schema": {"type": "object", "properties": {}},
    }
