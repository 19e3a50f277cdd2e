"""`Feedback`: a user turn that tells the model about a problem with its last reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentkit.argument_checks import check_option
from agentkit.errors import ParseError
from agentkit.prompts.template_values import copy_values

__all__ = ["FEEDBACK_TEMPLATE", "Feedback"]

FEEDBACK_TEMPLATE: Final = '''\
{% if not feedback.description %}{{ fail("the feedback has no description") }}{% endif %}
Error. Please try again.

"""
{{ feedback.description }}
"""'''
"""Default template of the kind `feedback`. The variable `feedback` in the template is a `Feedback` object."""


@dataclass(frozen=True)
class Feedback:
    """Feedback on a reply. In a history, feedback follows the reply. An adapter writes feedback as a user turn.

    Attributes:
        label: Short name of the problem, such as `parse_error`.
        description: Description of the problem for the model. The default template of `PromptAdapter` requires a
            description.
        meta: JSON values that the template may use. None if there are none.
    """

    label: str
    description: str = ""
    meta: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_option("Feedback.label", self.label, str)
        check_option("Feedback.description", self.description, str)
        check_option("Feedback.meta", self.meta, Mapping | None, "Pass a dict, or None.")
        if self.meta is not None:
            object.__setattr__(self, "meta", copy_values(self.meta, "Feedback.meta"))

    @classmethod
    def from_error(cls, error: ParseError) -> Feedback:
        """Creates the feedback on a reply that could not be parsed.

        The feedback has the description of the error, or its label if the error has no description. If the error
        names the place of an invalid value, the description begins with this place.
        """
        description = error.description or error.label
        if error.place != "reply":
            description = f"{error.place}: {description}"
        return cls(error.label, description, error.meta)
