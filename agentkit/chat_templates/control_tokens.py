"""Finds control tokens, such as `<|im_end|>`, in texts. Refuses or splits control tokens in texts of users."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from agentkit.errors import MessageError
from agentkit.jinja_environments.chat_rendering import list_literals

if TYPE_CHECKING:
    from agentkit.chat_templates.chat_template import ChatTemplate

__all__ = ["OnSpecialTokens", "TextGuard", "compile_control_tokens", "list_control_tokens"]

OnSpecialTokens: TypeAlias = Literal["keep", "raise", "space"]
"""Treatment of control tokens in the texts of users and tools. `ChatTemplate.render` describes the values."""

_CONTROL: Final = re.compile(
    r"<[|｜][^<>\n]{1,60}>|<[^<>\s|｜]{1,60}[|｜]>|\[\|[^\[\]\n]{1,60}\|\]"  # <|end|>, <|turn>, <turn|>, [|user|]
    r"|</?[a-z_:0-9]{1,30}>|\[/?[a-z]?[A-Z_]{2,30}\]|<</?[A-Z]{2,20}>>"  # </s>, [INST], [gMASK], <<SYS>>
)
"""Pattern that matches texts that look like control tokens."""


def list_control_tokens(text: str) -> list[str]:
    """Returns the parts of a text that look like a control token, such as `<|im_end|>`."""
    return _CONTROL.findall(text)


def compile_control_tokens(template: ChatTemplate) -> re.Pattern[str] | None:
    """Returns a pattern that matches the control tokens of the model. Returns None if no tokens are known.

    If the attribute `control_tokens` is empty, the pattern matches the tokens in the string constants and the
    plain text of all templates. The pattern also matches tokens that a template builds, for example from a
    role.
    """
    tokens = [*template.control_tokens, *template.special_tokens.values()]
    if not template.control_tokens:
        sources = [*template.sources.values()]
        texts = [text for source in sources for text in list_literals(source)]
        texts += [text for source in sources or [""] for text in template.probe.list_role_texts(source)]
        tokens += [token for text in texts for token in list_control_tokens(text)]
    # `protect` splits a token after the first character, so a token must have at least two characters.
    # White space at both ends of a token is removed, because an added space next to it would not split the token.
    words = {word for word in map(str.strip, tokens) if len(word) > 1}
    if not words:
        return None
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


class TextGuard:
    """Guard that refuses or changes texts with control tokens.

    Args:
        tokens: Pattern that matches control tokens.
        mode: `raise` refuses texts with a control token. `space` adds a space after the first character of each
            control token.

    Attributes:
        places: Places of the texts to which the guard added spaces.
    """

    def __init__(self, tokens: re.Pattern[str], mode: Literal["raise", "space"]) -> None:
        self._tokens = tokens
        self._mode = mode
        self.places: list[str] = []

    def protect(self, text: str, place: str) -> str:
        """Returns a text without control tokens: the text itself, or a copy with added spaces.

        Raises:
            MessageError: The text contains a control token, and the mode is `raise`.
        """
        token = self._tokens.search(text)
        while token:
            if self._mode == "raise":
                reason = f"the text contains the control token {token[0]!r}"
                raise MessageError(place, reason, 'Remove the token, or pass on_special_tokens="space".')
            self.places.append(place)
            # A space inside one token may complete another token, so the search is repeated.
            text = self._tokens.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
            token = self._tokens.search(text)
        return text

    def protect_json(self, value: Any, place: str) -> Any:
        """Returns a copy of a JSON value in which no key and no text contains a control token.

        Raises:
            MessageError: A key or text contains a control token, and the mode is `raise`.
        """
        if isinstance(value, str):
            return self.protect(value, place)
        if isinstance(value, Mapping):
            protected: dict[str, Any] = {}
            for key, item in cast("Mapping[str, Any]", value).items():
                name = self.protect(key, place)
                while name in protected:  # added spaces can make two keys equal
                    name += " "
                protected[name] = self.protect_json(item, f"{place}.{key}")
            return protected
        if isinstance(value, list):
            return [self.protect_json(item, f"{place}[{i}]") for i, item in enumerate(cast("list[Any]", value))]
        return value
