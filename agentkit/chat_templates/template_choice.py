"""`choose_template`: chooses one of several named templates for a request."""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.argument_checks import check_text
from agentkit.errors import OptionError

__all__ = ["choose_template"]


def choose_template(templates: Mapping[str, str], name: str | None, has_tools: bool) -> str:
    """Returns the text of the template for a request.

    Args:
        templates: Texts of templates by name.
        name: Name of the template. None means `tool_use` if this template exists and there are tools, and
            `default` otherwise.
        has_tools: True if the request has tools.

    Raises:
        OptionError: The name is not a string, there is no template with this name, or no template `default`.
    """
    check_text("chat_template", name)
    chosen = name or ("tool_use" if has_tools and "tool_use" in templates else "default")
    if not templates:
        reason = "the chat template has no Jinja text"
        raise OptionError("chat_template", reason, "Pass the text of a template as `jinja`.")
    if chosen not in templates:
        reason = f"no template is named {chosen!r} (existing names: {', '.join(map(repr, sorted(templates)))})"
        raise OptionError("chat_template", reason, "Pass one of these names.")
    return templates[chosen]
