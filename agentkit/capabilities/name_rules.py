"""Rules of a target for identifiers, such as tool names and call ids, and for speaker names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from agentkit.messages.features import RESERVED_NAMES
from agentkit.reprs import bounded_repr

__all__ = ["NameRule", "legal_speaker_name", "legal_speaker_names", "short_hash"]


def short_hash(text: str, length: int) -> str:
    """Returns the first `length` hexadecimal digits of the SHA-256 of a text."""
    from hashlib import sha256  # imported here, because the import is slow and rarely needed

    return sha256(text.encode()).hexdigest()[:length]


@lru_cache(1024)
def legal_speaker_name(name: str, refused: str) -> str:
    """Returns a speaker name that an API accepts, with at most 64 characters.

    A changed name ends with a short hash. Returns an earlier result of this function unchanged, so that names from
    a log do not change again. Two speakers can get the same name. `legal_speaker_names` prevents this.

    `refused` contains the characters that the API refuses, as the content of a character class `[…]` in a regular
    expression.
    """
    if len(name) <= 64 and not re.search(f"[{refused}]", name):
        return name
    return f"{re.sub(f'[{refused}]+', '_', name)[:55]}_{short_hash(name, 8)}"


def legal_speaker_names(names: Iterable[str], refused: str) -> dict[str, str]:
    """Returns the legal names of all speakers whose names must change, as a dict with the original names as keys.

    Different speakers always have different legal names. A new speaker never changes the legal names of earlier
    speakers.

    Args:
        names: Speaker names in the order of the messages.
        refused: Refused characters, as in `legal_speaker_name`.
    """
    speakers: dict[str, str] = {}
    for name in dict.fromkeys(names):
        legal, attempt = legal_speaker_name(name, refused), 0
        while legal in speakers:
            attempt += 1
            legal = f"{legal[:55]}_{short_hash(f'{name} {attempt}', 8)}"
        speakers[legal] = name
    return {name: legal for legal, name in speakers.items() if name != legal}


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRule:
    """Rule of an API for the identifiers that it accepts, such as tool names or call ids.

    Example:
        >>> NameRule().fit("search"), NameRule().fit("web search!")
        ('search', 'web_search_79531a0ed29bcc7c8ac75b0c')

    Attributes:
        pattern: Regular expression that matches complete identifiers.
        limit: Maximum number of characters.
        prefix: First characters of each new identifier that `fit` creates. Not used if `limit` is less than 32.
        reserved: Identifiers that the API refuses although they match the pattern.
    """

    pattern: str = r"[A-Za-z0-9_-]+"
    limit: int = 64
    prefix: str = ""
    reserved: frozenset[str] = frozenset()

    __repr__ = bounded_repr

    @property
    def takes_plain(self) -> bool:
        """True if the rule accepts all ordinary call ids and tool names, which then need no check.

        Call ids and tool names are ordinary if their message has none of the `Feature` bits `ODD_ID`, `ODD_NAME`
        and `RESERVED_NAME`.
        """
        return self.pattern in _PLAIN and self.limit >= 40 and self.reserved <= RESERVED_NAMES

    @lru_cache(4096)  # noqa: B019 - rules live as long as the program
    def fit(self, name: str) -> str:
        """Returns `name` if the rule allows the name. Otherwise returns a legal name with a hash of `name`.

        Two calls with equal rules and names return the same result.
        """
        legal = len(name) <= self.limit and re.fullmatch(self.pattern, name, re.ASCII)
        if legal and name not in self.reserved:
            return name
        digest = short_hash(name, 24)
        if self.limit < 32:
            return digest[: self.limit]
        letters = re.sub(r"[^A-Za-z0-9_]+", "_", name, flags=re.ASCII).strip("_")
        stem = f"{self.prefix}{letters}"[: self.limit - 25].rstrip("_") or "x"
        fitted = f"{stem}_{digest}"
        return fitted if re.fullmatch(self.pattern, fitted, re.ASCII) else f"x_{fitted}"[: self.limit]


_PLAIN = {r"[A-Za-z0-9_-]+", r"[A-Za-z_][A-Za-z0-9_-]*", r"[A-Za-z0-9_.:-]+"}
