"""`PromptTexts`: the texts of one request or example of a `PromptAdapter`, rendered from templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from inspect import cleandoc
from typing import Any, Final, TypeAlias

from agentkit.argument_checks import check_option
from agentkit.messages.blocks import Block
from agentkit.messages.message import Msg
from agentkit.prompts.feedback import FEEDBACK_TEMPLATE
from agentkit.prompts.prompt_media import PromptMedia
from agentkit.prompts.prompt_templates import PromptTemplates
from agentkit.prompts.signature import Signature

__all__ = ["PromptTexts", "get_empty_templates"]

_AnySignature: TypeAlias = type[Signature[Any]]

_DEFAULTS: Final = {
    "instance": "{{ query | yaml | trim }}",
    "feedback": FEEDBACK_TEMPLATE,
    "repair": (
        "Invalid answer. Please consider the following feedback and try again:\n\n{{ feedback.description }}"
    ),
    "more": "Good! Can you generate a different answer now?",
}
"""Maps kinds to default templates, which are those of Delphyne 0.15.

The default for the kind `system` is the instructions of the signature.
"""


@lru_cache(1)
def get_empty_templates() -> PromptTemplates:
    """Returns a `PromptTemplates` object without folders.

    Raises:
        MissingExtraError: A package of the extra `prompts` is not installed.
    """
    return PromptTemplates()


@dataclass(frozen=True)
class PromptTexts:
    """Prompts of one request or example, rendered from templates.

    Attributes:
        signature: Signature with the fields that the prompt shows.
        query: Values of the inputs, for the variable `query`.
        variables: Further variables of the templates of all kinds.
        templates: Templates in folders, which take precedence over all other templates.
        texts: Maps the kinds `system`, `instance` and `feedback` to the templates in the options of the adapter.
            None means that an option has no template. These templates take precedence over the templates of the
            signature.
    """

    signature: _AnySignature
    query: Mapping[str, Any]
    variables: Mapping[str, Any]
    templates: PromptTemplates
    texts: Mapping[str, str | None]

    def render(self, kind: str, variables: Mapping[str, object] | None = None) -> str | tuple[Block, ...]:
        """Renders a prompt. Returns a text, or blocks if the prompt has media.

        Args:
            kind: Kind of the prompt.
            variables: Further variables of the template of this kind.

        Raises:
            TemplateNotFoundError: There is no template of this kind.
            TemplateError: The template is invalid or calls `fail`, or a variable is missing.
            OptionError: A variable has a value that JSON cannot represent.
        """
        media = PromptMedia()
        values = self._create_variables(media, variables or {})
        text = self.templates.render(self.signature.__name__, kind, values, default=self._find_text(kind))
        return media.restore(text)

    def render_user(self) -> Iterator[Msg]:
        """Yields the user message and, if there is one, the priming as an assistant message.

        An empty user message is omitted.

        Raises:
            TemplateError: The template is invalid or calls `fail`, or a variable is missing.
            OptionError: A variable has a value that JSON cannot represent.
        """
        media = PromptMedia()
        values, default = self._create_variables(media, {}), self._find_text("instance")
        text, priming = self.templates.render_with_priming(
            self.signature.__name__, "instance", values, default=default
        )
        if text:
            yield Msg("user", media.restore(text), "user")
        if priming is not None:
            yield Msg("assistant", media.restore(priming), "assistant")

    def _create_variables(self, media: PromptMedia, variables: Mapping[str, object]) -> dict[str, object]:
        values: dict[str, object] = {**self.variables, **variables, "query": media.replace({**self.query})}
        # If `globals` is the name of an input, the class has no attribute of this name.
        globals_ = getattr(self.signature, "globals", None)
        if globals_ is not None:
            check_option(f"{self.signature.__name__}.globals", globals_, Mapping, "Assign a dict of JSON values.")
            values["globals"] = globals_
        return values

    def _find_text(self, kind: str) -> str | None:
        """Returns the template of a kind, such as `system`, from the options, the signature or the defaults.

        The first of these that has a template is used. Returns None if there is no template of this kind.
        """
        text = self.texts.get(kind)
        if text is not None:
            return text
        name = f"__{kind}_prompt__"
        own: object = getattr(self.signature, name, None)
        if own is not None:
            check_option(f"{self.signature.__name__}.{name}", own, str, "Assign a string.")
            return cleandoc(str(own)).strip()
        return self.signature.instructions if kind == "system" else _DEFAULTS.get(kind)
