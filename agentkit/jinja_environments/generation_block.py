"""Block `{% generation %}` of chat templates, which contains the text that a model writes."""

from __future__ import annotations

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser

from agentkit.jinja_environments.generation_spans import SPAN_END, SPAN_START

__all__ = ["GenerationBlock"]


class GenerationBlock(Extension):
    """Jinja extension that prints a mark before and after the body of a block `{% generation %}`."""

    tags = {"generation"}  # noqa: RUF012 - declared by jinja

    def parse(self, parser: Parser) -> nodes.Node:
        """Parses the block. Returns a node that prints a mark, the body and another mark."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        start, end = (nodes.Output([nodes.Name(name, "load")]) for name in (SPAN_START, SPAN_END))
        scope = nodes.Scope([start, *body, end])
        return scope.set_lineno(line)
