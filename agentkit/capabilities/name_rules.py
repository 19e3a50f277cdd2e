"""Rules of identifiers and speaker names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from agentkit.messages.features import RESERVED_NAMES
from agentkit.reprs import bounded_repr

__all__ = ["NameRule", "derive_call_id", "legal_speaker_name", "legal_speaker_names", "short_hash"]


def short_hash(text: str, length: int) -> str:
    """Returns the first hexadecimal digits of a text's SHA-256."""
    from hashlib import sha256  # slow to import, and only needed for odd names

    return sha256(text.encode()).hexdigest()[:length]


def derive_call_id(seed: str) -> str:
    """Returns an id for a tool call that has none. The same seed always gives the same id."""
    return f"call_{short_hash(seed, 24)}"


@lru_cache(1024)
def legal_speaker_name(name: str, refused: str) -> str:
    """A speaker's name without the characters that a field refuses, at most 64 long (AgentScope D16).

    What has to be changed gets a short hash; what comes out is left as it is when it comes again, as the names in
    a log do. `legal_speaker_names` keeps several speakers apart.
    """
    if len(name) <= 64 and not re.search(f"[{refused}]", name):
        return name
    return f"{re.sub(f'[{refused}]+', '_', name)[:55]}_{short_hash(name, 8)}"


def legal_speaker_names(names: Iterable[str], refused: str) -> dict[str, str]:
    """What the field gets for those speakers whose names it does not get as they are.

    In the order in which they first speak: two never become one, and nobody takes the name that another was given.
    What comes later changes nothing of what came before.
    """
    given: dict[str, str] = {}
    for name in dict.fromkeys(names):
        fitted, times = legal_speaker_name(name, refused), 0
        while fitted in given:
            times += 1
            fitted = f"{fitted[:55]}_{short_hash(f'{name} {times}', 8)}"
        given[fitted] = name
    return {name: fitted for fitted, name in given.items() if name != fitted}


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRule:
    """Which identifiers a wire takes: a pattern for the whole, and a limit of characters.

    `fit` leaves a legal identifier as it is and maps any other to a legal one that a hash of the original
    makes unlike every other: the same in every process and every request.
    """

    pattern: str = r"[A-Za-z0-9_-]+"
    limit: int = 64
    prefix: str = ""
    reserved: frozenset[str] = frozenset()

    __repr__ = bounded_repr

    @property
    def takes_plain(self) -> bool:
        """Whether every identifier that messages do not mark as odd is legal."""
        return self.pattern in _PLAIN and self.limit >= 40 and self.reserved <= RESERVED_NAMES

    @lru_cache(4096)  # noqa: B019 - rules live as long as the program
    def fit(self, name: str) -> str:
        """The identifier that the wire gets."""
        legal = len(name) <= self.limit and re.fullmatch(self.pattern, name, re.ASCII)
        if legal and name not in self.reserved:
            return name
        digest = short_hash(name, 24)
        if self.limit < 32:
            return digest[: self.limit]
        kept = re.sub(r"[^A-Za-z0-9_]+", "_", name, flags=re.ASCII).strip("_")
        stem = f"{self.prefix}{kept}"[: self.limit - 25].rstrip("_") or "x"
        fitted = f"{stem}_{digest}"
        return fitted if re.fullmatch(self.pattern, fitted, re.ASCII) else f"x_{fitted}"[: self.limit]


_PLAIN = {r"[A-Za-z0-9_-]+", r"[A-Za-z_][A-Za-z0-9_-]*", r"[A-Za-z0-9_.:-]+"}
