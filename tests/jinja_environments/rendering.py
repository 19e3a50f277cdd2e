"""Environments that several modules of tests share."""

from __future__ import annotations

from typing import Any, Final

from jinja2 import Environment

from agentkit.jinja_environments import model_environment, prompt_environment

__all__ = ["MODEL", "PROMPT", "render"]

PROMPT: Final = prompt_environment()
MODEL: Final = model_environment()


def render(source: str, environment: Environment = PROMPT, /, **variables: Any) -> str:
    """Renders the text of a template."""
    return environment.from_string(source).render(variables)
