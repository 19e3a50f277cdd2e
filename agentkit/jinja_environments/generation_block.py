"""Block `{% generation %}` of chat templates, which contains the text that a model writes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jinja2.ext import Extension

__all__ = ["SPAN_END", "SPAN_START", "get_generation_block"]

SPAN_START: Final = "_span_start"
"""Name of the variable that a chat template prints at the start of each block `generation`."""
SPAN_END: Final = "_span_end"
"""Name of the variable that a chat template prints at the end of each block `generation`."""


@cache
def get_generation_block() -> type[Extension]:
    """Returns jinja's extension class for the block. The first call creates it, because jinja2 is optional."""
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.parser import Parser

    class GenerationBlock(Extension):
        """Statement that renders its body between the variables `SPAN_START` and `SPAN_END`."""

        tags = {"generation"}  # noqa: RUF012 - declared by jinja

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            start, end = (nodes.Output([nodes.Name(name, "load")]) for name in (SPAN_START, SPAN_END))
            scope = nodes.Scope([start, *body, end])
            return scope.set_lineno(line)

    return GenerationBlock
