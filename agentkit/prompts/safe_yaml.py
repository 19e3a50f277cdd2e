"""`load_yaml`: reads YAML that a model wrote. Uses the package pyyaml, and refuses aliases."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from agentkit.errors import MissingExtraError, ParseError
from agentkit.reprs import shorten

__all__ = ["load_yaml", "require_yaml"]


def load_yaml(source: str) -> Any:
    """Returns the value of a YAML text.

    Raises:
        ParseError: The text is invalid YAML, has an alias or is nested too deeply.
        MissingExtraError: pyyaml is not installed.
    """
    yaml_module, loader = _get_yaml()
    try:
        return yaml_module.load(source, loader)
    except (yaml_module.YAMLError, ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        description = f"invalid YAML: {shorten(reason, 300)}"
        raise ParseError(description, failure="no_structure", text=source) from None


def require_yaml() -> None:
    """Raises `MissingExtraError` if pyyaml is not installed."""
    _get_yaml()


@lru_cache(1)
def _get_yaml() -> tuple[Any, Any]:
    """Returns the package yaml, and a loader that refuses aliases.

    With a few aliases, a short text could become a value of any size.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("pyyaml", "prompts", "Reading YAML") from None

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("aliases are not supported")
            return super().compose_node(parent, index)

    return yaml, Loader
