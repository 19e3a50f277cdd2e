"""The differences between the two versions that are intended. Every row applies to what the base version gives.

A change of the library that rewords a ledger reason, or moves a value in a message, adds its row here in the same
commit. Everything else must stay equal.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["REASONS", "TEXTS", "move_native_keys"]

REASONS: Final[tuple[tuple[str, str], ...]] = (
    (
        r"a late system message, as a line of the user's under its name",
        r"late system message written as a user line under its name",
    ),
    (r"the viewer does not see it", r"hidden from the viewer"),
    (r"another agent's tool use", r"tool call or result of another agent"),
    (
        r"thinking, or a provider's own part, of a speaker in the frame",
        r"the history frame has no lines for thinking and opaque parts of replies",
    ),
    (r"left out or rewritten by the history policy", r"omitted or rewritten by the history policy"),
    (r"the tags around a run of speakers", r"the tags of a history frame"),
    (r"as it is", r"sent unchanged"),
    (r"a line of the history frame", r"written as a line of the history frame"),
    (
        r"a late system message, as a line of the user's under its name",
        r"late system message written as a user line under its name",
    ),
    (r"said inside an open exchange, put behind it", r"was inside an open exchange; moved after its results"),
    (r"equals the result that call (.*) has", r"duplicate of the result of call \1"),
)
"""Ledger reasons and synthesis names: a regular expression that matches the whole old one, and the new one.

The new one may refer to groups: `(r"(.+) takes no (\\w+)", r"\\1 does not accept \\2")`. The first matching row
counts. The rows also apply to the reasons of losses, of invalid blocks (after `invalid block: `, too), and of
estimated token counts.
"""

TEXTS: Final[tuple[tuple[str, str], ...]] = ()
"""Texts within requests, such as fillers and notes for omitted content: a regular expression, and its replacement.

Every row is applied to every text of a record. Where a row changes anything, token counts and prefix digests are
not compared.
"""


def move_native_keys(message: dict[str, Any]) -> dict[str, Any]:
    """Returns a stored message of the base version with the keys of its native log where they stand now."""
    return message
