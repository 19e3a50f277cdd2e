"""`as_tokenizer`: wraps a tokenizer or a function. `find_tokens`: finds the tokens of a part of a text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, cast, overload

from agentkit.errors import OptionError
from agentkit.reprs import shorten_repr

__all__ = ["Encode", "TextTokenizer", "TokenizerLike", "as_tokenizer", "find_tokens", "is_space_after_stop"]

Encode: TypeAlias = Callable[[str], tuple[Sequence[int], Sequence[tuple[int, int]]]]
"""Function that returns the token ids of a text, and the start and end of each token as indexes of the text.

The function converts special tokens in the text to their ids. It adds no special tokens.
"""

TokenizerLike: TypeAlias = Encode | Any
"""An `Encode` function, a `tokenizers.Tokenizer`, or a fast tokenizer of transformers."""

_ID_LIMIT: Final = 2**32  # the package tokenizers stores ids in 32 bits
_ADVICE: Final = "Pass a tokenizers.Tokenizer, or a function that returns token ids and offsets."


@dataclass(frozen=True)
class TextTokenizer:
    """Tokenizer that encodes texts. Unless it wraps a function, the tokenizer also decodes token ids.

    Attributes:
        encode: Function that encodes a text and checks the result.
        tokenizer: The `tokenizers.Tokenizer`. None for a function that only encodes.
    """

    encode: Encode
    tokenizer: Any = None

    @property
    def can_decode(self) -> bool:
        """True unless the tokenizer is a function that only encodes."""
        return self.tokenizer is not None

    def decode(self, ids: Sequence[int]) -> str | None:
        """Returns the text of token ids, with special tokens. Returns None if an id is unknown."""
        if any(not 0 <= id < _ID_LIMIT or self.tokenizer.id_to_token(id) is None for id in {*ids}):
            return None
        return cast("str", self.tokenizer.decode(list(ids), skip_special_tokens=False))

    def is_special(self, id: int) -> bool:
        """Returns True if a token id is the id of a special token."""
        token = self.tokenizer.get_added_tokens_decoder().get(id)
        return token is not None and bool(token.special)


def as_tokenizer(tokenizer: TokenizerLike) -> TextTokenizer:
    """Returns a `TextTokenizer` for a tokenizer, or for a function that encodes texts.

    Raises:
        OptionError: `tokenizer` is neither a tokenizer nor a function. Or the tokenizer truncates or pads texts,
            or encodes special tokens as ordinary text.
    """
    inner: Any = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(inner, "encode") and hasattr(inner, "token_to_id"):
        return TextTokenizer(partial(_encode_checked, _create_encode(inner)), inner)
    if not callable(tokenizer) or hasattr(tokenizer, "convert_ids_to_tokens"):
        raise OptionError(
            "encode", f"expected a tokenizer or a function, got {shorten_repr(tokenizer, 60)}", _ADVICE
        )
    return TextTokenizer(partial(_encode_checked, cast("Encode", tokenizer)))


def _encode_checked(encode: Encode, text: str) -> tuple[Sequence[int], Sequence[tuple[int, int]]]:
    """Returns the token ids and the offsets of a text, and checks that `encode` returned one offset for each id.

    Raises:
        OptionError: `encode` did not return two sequences of the same length. Or the last of several tokens does
            not end between 1 and the length of the text. The end 0 indicates an added special token.
    """
    pair: Any = encode(text)
    try:
        ids, offsets = pair
        count, offset_count = len(ids), len(offsets)
        end = offsets[offset_count - 1][1] if offset_count > 1 else len(text)
        if type(ids) not in (list, tuple) or (count and type(ids[0]) is not int):
            ids = [int(id) for id in ids]
        if not isinstance(offsets, _Offsets) and offset_count and type(offsets[0]) is not tuple:
            offsets = [(int(start), int(end)) for start, end in offsets]
    except (TypeError, ValueError, LookupError):
        reason = f"expected token ids and offsets, got {shorten_repr(pair, 60)}"
    else:
        if count != offset_count:
            reason = f"expected one offset for each token, got {count} tokens and {offset_count} offsets"
        elif offset_count > 1 and not 0 < end <= len(text):
            reason = f"expected the last token to end at a position from 1 to {len(text)}, got {end}"
        else:
            return ids, offsets
    advice = "Return the token ids without added special tokens, and the start and end of each token in the text."
    raise OptionError("encode", reason, advice)


def find_tokens(offsets: Sequence[tuple[int, int]], start: int, end: int, text: str, stop: str) -> tuple[int, int]:
    """Returns the span of the tokens whose characters are all between two positions of a text.

    A stop token that starts at the first position, or ends at the second position, may also contain white space
    outside the positions (`lstrip` or `rstrip` of an added token). The span includes this stop token. If there is
    no token between the positions, the end of the span is not after its start.

    Args:
        offsets: Offsets of the tokens.
        start: First position in the text.
        end: Second position in the text.
        text: Text of the tokens.
        stop: Stop token of the chat template. Empty if there is none.
    """
    get_offset: Callable[[int], Any] = getattr(offsets, "get", offsets.__getitem__)
    indexes = range(len(offsets))
    first = bisect_left(indexes, (start,), key=get_offset)
    last = bisect_left(indexes, (end,), first, key=get_offset)
    while first < last and offsets[last - 1][1] > end:  # skip a token that ends after the end position
        last -= 1
    while first < last and offsets[first][1] <= start:  # skip a token that ends at the start position
        first += 1
    if stop and first > 0 and start < offsets[first - 1][1]:
        token_start, token_end = offsets[first - 1]
        if text[token_start:start].isspace() and text[start:token_end].strip() == stop:
            first -= 1
    if last < len(offsets) and offsets[last][0] < end and is_space_after_stop(text, end, offsets[last][1], stop):
        last += 1
    return first, last


def is_space_after_stop(text: str, end: int, token_end: int, stop: str) -> bool:
    """Returns True if a stop token ends at `end`, and the text from there to `token_end` is white space.

    With the tokenizer of Phi-3, for example, the token of `<|end|>` contains the line break after it (`rstrip`).
    """
    return bool(stop) and text.endswith(stop, 0, end) and text[end:token_end].isspace()


def _create_encode(tokenizer: Any) -> Encode:
    for name in ("truncation", "padding"):
        if getattr(tokenizer, name, None):
            advice = f"Call no_{name}() of the tokenizer first. Use `max_tokens` to truncate samples."
            raise OptionError("encode", f"the tokenizer has {name} enabled", advice)
    if getattr(tokenizer, "encode_special_tokens", False):
        advice = "Set `encode_special_tokens` of the tokenizer to False."
        raise OptionError("encode", "the tokenizer encodes special tokens as ordinary text", advice)
    is_trimmed = _trims_offsets(tokenizer)

    def encode_text(text: str) -> tuple[Sequence[int], Sequence[tuple[int, int]]]:
        encoding = _encode(tokenizer, text)
        return encoding.ids, _Offsets(encoding, is_trimmed)

    return encode_text


def _encode(tokenizer: Any, text: str) -> Any:
    try:
        return tokenizer.encode(text, add_special_tokens=False)
    except Exception as error:  # the package tokenizers has no class for its errors
        reason = f"the tokenizer cannot encode a text ({error})"
        raise OptionError("encode", reason, "Pass another tokenizer.") from None


def _trims_offsets(tokenizer: Any) -> bool:
    """Returns True if the offsets of tokens exclude the white space in the tokens."""
    encoding = _encode(tokenizer, "a b")
    has_space = any(space in token for token in encoding.tokens for space in " Ġ▁")
    return has_space and all(start > 1 or end < 2 for start, end in encoding.offsets)


class _Offsets(Sequence[tuple[int, int]]):
    """Offsets (start and end) of the tokens of an encoded text.

    Each offset is read from the encoding when it is requested, because `tokenize` needs only a few offsets.

    Attributes:
        get: Function that returns the start and end of the token with a given index.

    Args:
        encoding: Encoding of `tokenizers`.
        is_trimmed: True if the offsets do not include white space. Each token then starts at the end of the
            previous token.
    """

    def __init__(self, encoding: Any, is_trimmed: bool) -> None:
        self._encoding = encoding
        self.get = self._get_untrimmed if is_trimmed else encoding.token_to_chars

    def __len__(self) -> int:
        return len(self._encoding)

    @overload
    def __getitem__(self, index: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, int]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, int] | Sequence[tuple[int, int]]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return self.get(index)

    def _get_untrimmed(self, index: int) -> tuple[int, int]:
        start, end = self._encoding.token_to_chars(index)
        return min(start, self._encoding.token_to_chars(index - 1)[1] if index else 0), end
