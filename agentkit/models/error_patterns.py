"""`ErrorPatterns`, which declares the codes and texts of the errors of one API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, cast

from agentkit.reprs import bounded_repr

__all__ = ["ErrorPatterns", "MAX_SEARCHED"]

MAX_SEARCHED: Final = 4_000
"""Maximum number of characters to search in an error text. In a longer, hostile text, a search could be slow."""

_MAX_DIGITS: Final = 12  # maximum number of digits of a token count


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPatterns:
    """Regular expressions that classify the errors of a provider's API.

    The HTTP status usually selects the error class:

    - `AuthError` for 401, 402 and 403
    - `RateLimitError` for 429
    - `OverloadedError` for 408, 409, 424, 425 and all statuses from 500
    - `BadRequestError` for any other status from 400

    The patterns are used where the status is not specific enough: in streams, and for the statuses 400, 413, 422
    and 500. Matching ignores case, and a pattern matches if any part of a code or text matches. An empty pattern
    matches nothing. `a | b` has the patterns of both objects.

    A match in a quoted part of an error text does not count, because the quoted part may come from the request.
    This rule does not apply to the patterns `other_limit`, `stream_only_text` and `context_sizes`.

    Attributes:
        statuses: Maps each status with a special meaning in this API to the usual status for the same meaning.
            For example, `{498: 401}` declares that 498 reports an invalid key.
        context_length_code: Codes that report a prompt that is too long.
        context_length_text: Texts that report a prompt that is too long.
        other_limit: Codes and texts about limits other than the context length. If this pattern matches,
            `context_length_text` is not used.
        part_code: Codes about one part of the request. If this pattern matches the complete code,
            `context_length_text` is not used.
        context_sizes: Patterns for the token counts in texts about the prompt length. The first matching pattern
            is used. A pattern has the named group `limit` (context length). Optional groups are `count` (tokens of
            the prompt) and `excess` (tokens of the prompt above the limit). The optional group `reply` has the
            number of tokens within the limit that are reserved for the reply.
        auth_code: Codes that report a missing key, permission or payment.
        auth_text: Texts that report a missing key, permission or payment. Used for errors with status 400.
        rate_limit_code: Codes that report too many calls or tokens. Used for errors without a status. If an error
            has neither a status nor a code, the pattern is searched in the error text.
        overload_code: Codes that report an overloaded server or an internal error. Used in the same cases as
            `rate_limit_code`.
        bad_request_code: Codes that report a refused request. Used in the same cases as `rate_limit_code`.
        quota_code: Codes that report an exhausted quota. If this pattern matches, the RateLimitError is not
            retryable.
        quota_text: Texts that report an exhausted quota. Used for errors with no code and no waiting time.
        stream_only_text: Texts of the error if a model accepts only requests for a stream. `generate` then
            requests a stream.
        template_text: Texts of the error if the chat template of a local model refuses a request.

    Example:
        >>> patterns = ErrorPatterns(context_sizes=("(?P<count>[0-9]+) of (?P<limit>[0-9]+) tokens",))
        >>> patterns.parse_sizes("The prompt has 900 of 800 tokens.")
        (800, 900)

    """

    statuses: Mapping[int, int] = field(default_factory=dict[int, int], hash=False)
    context_length_code: str = ""
    context_length_text: str = ""
    other_limit: str = ""
    part_code: str = ""
    context_sizes: tuple[str, ...] = ()
    auth_code: str = ""
    auth_text: str = ""
    rate_limit_code: str = ""
    overload_code: str = ""
    bad_request_code: str = ""
    quota_code: str = ""
    quota_text: str = ""
    stream_only_text: str = ""
    template_text: str = ""

    __repr__ = bounded_repr

    def __or__(self, other: ErrorPatterns) -> ErrorPatterns:
        return ErrorPatterns(
            **{item.name: _join(getattr(self, item.name), getattr(other, item.name)) for item in fields(self)}
        )

    def parse_sizes(self, text: str) -> tuple[int, int | None] | None:
        """Parses the token counts in an error text about the prompt length.

        Returns:
            The maximum and the actual size of the prompt, in tokens. The actual size is None if the text does not
            contain this size. The result is None if no pattern matches, or if no tokens remain for the prompt.

        """
        digits = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text[:MAX_SEARCHED])
        for pattern in self.context_sizes:
            match = re.search(pattern, digits, re.IGNORECASE | re.DOTALL)
            if match:
                sizes = {name: int(size[:_MAX_DIGITS]) for name, size in match.groupdict().items() if size}
                limit = sizes["limit"] - sizes.get("reply", 0)
                count = limit + sizes["excess"] if "excess" in sizes else sizes.get("count")
                return (limit, count) if limit > 0 else None
        return None


def _join(first: Any, second: Any) -> Any:
    """Joins two values of a field: two patterns, two tuples of patterns, or two mappings."""
    if isinstance(first, tuple):
        return first + second
    if isinstance(first, Mapping):
        return {**cast("Mapping[int, int]", first), **second}
    return f"{first}|{second}" if first and second else first or second
