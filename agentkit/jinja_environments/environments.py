"""`prompt_environment` and `model_environment`: the environments for prompts and for chat templates of models."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from agentkit.jinja_environments.filters import write_chat_json, write_json, write_yaml
from agentkit.jinja_environments.functions import (
    TemplateDict,
    check_printable,
    format_local_time,
    get_namespace_class,
    raise_error,
)
from agentkit.jinja_environments.generation_block import get_generation_block
from agentkit.jinja_environments.limited_filters import limit_filters
from agentkit.jinja_environments.sandbox import get_prompt_class, get_sandbox_class
from agentkit.jinja_environments.yaml_texts import import_yaml

if TYPE_CHECKING:
    from jinja2 import BaseLoader
    from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["model_environment", "prompt_environment"]


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
    environment_class = get_prompt_class()
    from jinja2 import StrictUndefined

    environment = environment_class(
        loader=loader,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        optimized=False,  # no expression runs when a template is compiled
        undefined=StrictUndefined,
        finalize=check_printable,
    )
    environment.filters.update(yaml=write_yaml, json=write_json)
    return _add_limits(environment, {"fail": raise_error})


def _add_limits(
    environment: ImmutableSandboxedEnvironment, functions: dict[str, Any]
) -> ImmutableSandboxedEnvironment:
    """Adds the functions and the limits to an environment, and removes the random functions."""
    global_names = cast("dict[str, Any]", environment.globals)
    del global_names["lipsum"], environment.filters["random"]
    global_names.update(functions, namespace=get_namespace_class())
    limit_filters(environment)
    return environment


def model_environment(strftime_now: Callable[[str], str] | None = None) -> ImmutableSandboxedEnvironment:
    """Returns the environment for chat templates of models.

    The environment has the options, filters and functions of `transformers.utils.chat_template_utils`: the
    statements `break` and `continue`, the block `generation`, the filter `tojson` without HTML escapes, and the
    functions `raise_exception` and `strftime_now`. An undefined name prints nothing.

    Args:
        strftime_now: Function that formats the current time with a format of `strftime`. None means a function
            that formats the local time.

    Raises:
        MissingExtraError: The package jinja2 is not installed.
    """
    environment_class = get_sandbox_class("templates", "Rendering a chat template")
    environment = environment_class(
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        optimized=False,  # no expression runs when a template is compiled
        extensions=["jinja2.ext.loopcontrols", get_generation_block()],
    )
    environment.filters["tojson"] = write_chat_json
    functions = {"raise_exception": raise_error, "strftime_now": strftime_now or format_local_time}
    return _add_limits(environment, {**functions, "dict": TemplateDict()})
