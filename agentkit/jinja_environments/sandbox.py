"""Classes of the environments: jinja's sandbox with limits.

The first call of a function creates the class, because jinja2 is an optional package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from agentkit.errors import MissingExtraError
from agentkit.jinja_environments.limits import check_widths, limit_format

if TYPE_CHECKING:
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["SPAN_END", "SPAN_START", "get_generation_block", "get_prompt_class", "get_sandbox_class"]

SPAN_START: Final = "_span_start"
"""Name of the variable that a chat template prints at the start of each block `generation`."""
SPAN_END: Final = "_span_end"
"""Name of the variable that a chat template prints at the end of each block `generation`."""


@cache
def get_sandbox_class(extra: str, purpose: str) -> type[ImmutableSandboxedEnvironment]:
    """Returns the base class of both environments: jinja's sandbox with limits for the operator `~` and widths.

    Args:
        extra: Extra of agentkit that contains jinja2, for the error.
        purpose: Task that needs jinja2, for the error.

    Raises:
        MissingExtraError: The package jinja2 is not installed.
    """
    try:
        from jinja2 import nodes
        from jinja2.sandbox import ImmutableSandboxedEnvironment
        from jinja2.visitor import NodeTransformer
    except ImportError:
        raise MissingExtraError("jinja2", extra, purpose) from None

    class TextJoins(NodeTransformer):
        """Transformer that replaces `a ~ b` with `[a, b] | concatenate`, because jinja cannot intercept `~`."""

        def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802 - jinja's name
            self.generic_visit(node)
            items = nodes.List(node.nodes, lineno=node.lineno)
            return nodes.Filter(items, "concatenate", [], [], None, None, lineno=node.lineno)

    class BoundedEnvironment(ImmutableSandboxedEnvironment):
        """Sandbox with limits for the operator `~`, for string methods and for formats."""

        intercepted_binops = frozenset(["*", "**", "%", "+"])

        def _generate(
            self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
        ) -> str:
            TextJoins().visit(source)
            source.set_environment(self)
            return super()._generate(source, name, filename, defer_init)

        def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if isinstance(getattr(function, "__self__", None), str):
                check_widths((*args, *kwargs.values()))
            return super().call(context, function, *args, **kwargs)

        def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
            function = super().wrap_str_format(value)
            return None if function is None else limit_format(function, value.__self__)

    return BoundedEnvironment


@cache
def get_prompt_class() -> type[ImmutableSandboxedEnvironment]:
    """Returns the class of the environment for prompts.

    Raises:
        MissingExtraError: The package jinja2 is not installed.
    """
    sandbox_class = get_sandbox_class("prompts", "Rendering a prompt template")

    class PromptEnvironment(sandbox_class):  # type: ignore[misc, valid-type]  # the class is created at run time
        """Environment in which the keys of a dict take precedence over its methods."""

        def getattr(self, obj: Any, attribute: str) -> Any:
            if isinstance(obj, dict) and attribute in obj:
                return cast("dict[str, Any]", obj)[attribute]
            return super().getattr(obj, attribute)

    return PromptEnvironment


@cache
def get_generation_block() -> type[Extension]:
    """Returns the extension for the block `generation`, which contains text that the model writes."""
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
