"""Finds control tokens, such as `<|im_end|>`, in texts of users and tools, where such a token could end a turn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, cast

from agentkit.errors import MessageError
from agentkit.jinja_environments.chat_rendering import list_literals

__all__ = ["OnSpecialTokens", "TextGuard", "find_control_tokens", "list_control_tokens"]

OnSpecialTokens: TypeAlias = Literal["keep", "raise", "space"]
"""Treatment of control tokens in the texts of users and tools. `ChatTemplate.render` describes the values."""

_CONTROL: Final = re.compile(
    r"<[|｜][^<>\n]{1,60}>|<[^<>\s|｜]{1,60}[|｜]>|\[\|[^\[\]\n]{1,60}\|\]"  # <|end|>, <|turn>, <turn|>, [|user|]
    r"|</?[a-z_:0-9]{1,30}>|\[/?[a-z]?[A-Z_]{2,30}\]|<</?[A-Z]{2,20}>>"  # </s>, [INST], [gMASK], <<SYS>>
)
"""Pattern of control tokens in the texts of a template."""


def list_control_tokens(text: str) -> list[str]:
    """Returns the parts of a text that look like a control token, such as `<|im_end|>`."""
    return _CONTROL.findall(text)


def find_control_tokens(source: str, tokens: frozenset[str], texts: Iterable[str] = ()) -> re.Pattern[str] | None:
    """Returns a pattern that matches the control tokens of a model. Returns None if no tokens are known.

    Args:
        source: Text of a chat template. Its string constants and its plain text are searched for control tokens.
            Empty to search only `texts`.
        tokens: Known control tokens.
        texts: Texts that the template wrote, which are searched too. They also have the tokens that the template
            builds, for example from the role of a message.
    """
    literals = list_literals(source) if source else ()
    words = {*tokens, *(word for text in (*literals, *texts) for word in list_control_tokens(text))}
    # Tokens of one character are excluded, because a space cannot split them. White space around a token is
    # removed, because `protect` would otherwise find such a token again after it added a space.
    words = {word for word in map(str.strip, words) if len(word) > 1}
    if not words:
        return None
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


@dataclass(frozen=True, slots=True)
class TextGuard:
    """Guard that refuses or changes texts with control tokens.

    Attributes:
        tokens: Pattern that matches control tokens.
        mode: `raise` refuses texts with a control token. `space` adds a space after the first character of each
            control token.
        places: Places of the texts with added spaces.
    """

    tokens: re.Pattern[str]
    mode: Literal["raise", "space"]
    places: list[str] = field(default_factory=list[str])

    def protect(self, text: str, place: str) -> str:
        """Returns a text without control tokens: the text itself, or a copy with added spaces.

        Raises:
            MessageError: The text contains a control token, and the mode is `raise`.
        """
        token = self.tokens.search(text)
        while token:
            if self.mode == "raise":
                reason = f"the text contains the control token {token[0]!r}"
                raise MessageError(place, reason, 'Remove the token, or pass on_special_tokens="space".')
            self.places.append(place)
            # A space inside one token may complete another token, so the search is repeated.
            text = self.tokens.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)
            token = self.tokens.search(text)
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
