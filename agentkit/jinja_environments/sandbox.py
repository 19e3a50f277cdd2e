"""Classes of the environments: jinja's sandbox with limits.

Each function creates its class at the first call, because jinja2 is an optional package.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from agentkit.errors import MissingExtraError
from agentkit.jinja_environments.functions import get_namespace_class
from agentkit.jinja_environments.limits import Counters, end_rendering, start_rendering
from agentkit.jinja_environments.operators import OPERATORS, join_pieces
from agentkit.jinja_environments.sandbox_access import BoundedAccess
from agentkit.jinja_environments.template_code import BoundedCode

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["get_prompt_class", "get_sandbox_class"]

_LISTS: Final[Any] = (list, tuple)


@cache
def get_sandbox_class(extra: str, purpose: str) -> type[ImmutableSandboxedEnvironment]:
    """Returns the base class of both environments: jinja's sandbox with limits.

    Args:
        extra: Extra of `agentkit-middleware` that installs jinja2. The error names this extra.
        purpose: Task that needs jinja2, such as `Rendering a prompt template`. The error names this task.

    Raises:
        MissingExtraError: The package jinja2 is not installed.
    """
    try:
        from jinja2 import Template
        from jinja2.compiler import CodeGenerator
        from jinja2.runtime import BlockReference, LoopContext, Macro
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise MissingExtraError("jinja2", extra, purpose) from None

    class BoundedTemplate(Template):
        """Template that limits each rendering."""

        def render(self, *args: Any, **kwargs: Any) -> str:
            variables = dict(*args, **kwargs)
            lengths = [len(value) for value in variables.values() if isinstance(value, _LISTS)]
            token = start_rendering(Counters(max(lengths) if lengths else 0))
            try:
                return super().render(variables)
            finally:
                end_rendering(token)

    class BoundedEnvironment(BoundedAccess, ImmutableSandboxedEnvironment):
        """Jinja's sandbox with the limits of renderings."""

        intercepted_binops = frozenset({*OPERATORS, "+"})
        default_binop_table = ImmutableSandboxedEnvironment.default_binop_table | OPERATORS
        code_generator_class = type("TemplateCode", (BoundedCode, CodeGenerator), {})
        template_class = BoundedTemplate
        concat = staticmethod(join_pieces)
        plain_types = frozenset({str, int, float, LoopContext, get_namespace_class()})
        nested_types = (Macro, LoopContext, BlockReference)
        macro_type = Macro

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
