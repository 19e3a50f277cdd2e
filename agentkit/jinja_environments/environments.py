"""`prompt_environment` and `model_environment`: the environments for prompts and for chat templates of models.

Both functions import jinja2, which is an optional package. The modules that import jinja2 at their top, such as
`sandbox`, are imported only after a call of `check_jinja`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from agentkit.errors import MissingExtraError
from agentkit.jinja_environments.filters import write_chat_json, write_json, write_yaml
from agentkit.jinja_environments.functions import TemplateDict, check_printable, create_clock, raise_error
from agentkit.jinja_environments.generation_spans import NO_MARKS
from agentkit.jinja_environments.yaml_texts import import_yaml

if TYPE_CHECKING:
    from jinja2 import BaseLoader
    from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["check_jinja", "model_environment", "prompt_environment"]


def check_jinja(extra: str, purpose: str) -> None:
    """Raises an error if jinja2 is not installed.

    Args:
        extra: Extra of `agentkit-middleware` that installs jinja2. The error names this extra.
        purpose: Task that needs jinja2, such as `Rendering a prompt template`. The error names this task.

    Raises:
        MissingExtraError: The package jinja2 is not installed.
    """
    try:
        import_module("jinja2")
    except ImportError:
        raise MissingExtraError("jinja2", extra, purpose) from None


def prompt_environment(loader: BaseLoader | None = None) -> ImmutableSandboxedEnvironment:
    """Returns the environment for templates of prompts.

    The line break after a statement `{% … %}`, the spaces before a statement, and the last line break of a
    template are removed. An undefined name is an error. Only texts, numbers, None, lists, tuples and dicts can be
    printed. If a dict `query` has the key `items`, `query.items` is the value of this key and not the method of
    the dict.

    The filters `yaml` and `json` convert a value to text. Both have the options `exclude_defaults`, `exclude_none`
    and `exclude_fields`. The filter `json` also has the option `indent`. The function `fail(message)` ends the
    rendering with an error. There are no random functions, so equal variables give equal texts.

    Args:
        loader: Loader of the templates that can be included. None if no template can be included.

    Raises:
        MissingExtraError: A package of the extra `prompts` is not installed.
    """
    import_yaml()
    check_jinja("prompts", "Rendering a prompt template")
    from jinja2 import StrictUndefined

    from agentkit.jinja_environments.sandbox import PromptEnvironment

    return PromptEnvironment(
        filters={"json": write_json, "yaml": write_yaml},
        functions={"fail": raise_error},
        loader=loader,
        undefined=StrictUndefined,
        finalize=check_printable,
    )


def model_environment() -> ImmutableSandboxedEnvironment:
    """Returns the environment for chat templates of models.

    The environment has the options, filters and functions of `transformers.utils.chat_template_utils`: the
    statements `break` and `continue`, the block `generation`, the filter `tojson` without HTML escapes, and the
    functions `raise_exception` and `strftime_now`. An undefined name prints nothing.

    Raises:
        MissingExtraError: The package jinja2 is not installed.
    """
    check_jinja("templates", "Rendering a chat template")
    from agentkit.jinja_environments.generation_block import GenerationBlock
    from agentkit.jinja_environments.sandbox import BoundedEnvironment

    return BoundedEnvironment(
        filters={"tojson": write_chat_json},
        functions={
            "dict": TemplateDict(),
            "raise_exception": raise_error,
            "strftime_now": create_clock(),
            **NO_MARKS,
        },
        extensions=["jinja2.ext.loopcontrols", GenerationBlock],
    )
