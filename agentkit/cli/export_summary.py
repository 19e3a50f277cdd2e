"""`ExportSummary`: counts the samples, tokens, errors and losses of `agentkit export`."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from agentkit.reprs import as_one_line, shorten

__all__ = ["ExportSummary"]

_MAX_REASONS: Final = 20


@dataclass
class ExportSummary:
    """Counts of an export.

    Attributes:
        samples: Number of exported samples.
        trained_tokens: Number of trained tokens.
        too_long: Number of samples with more than `--max-tokens` tokens. If `split_rewritten` splits a sample,
            each part counts as a sample.
        refused: Number of logs, conversations and samples with an error.
        losses: Number of losses. A loss is content that the format cannot represent, or that the template does not
            write.
        reasons: Maps each reason to the number of its losses. Contains at most 20 reasons.
    """

    samples: int = 0
    trained_tokens: int = 0
    too_long: int = 0
    refused: int = 0
    losses: int = 0
    reasons: Counter[str] = field(default_factory=Counter[str])

    def add_loss(self, place: str, reason: str) -> None:
        """Counts a loss. The summary does not list the place."""
        self.losses += 1
        if reason in self.reasons or len(self.reasons) < _MAX_REASONS:
            self.reasons[reason] += 1

    def print(self, *, has_tokens: bool) -> None:
        """Prints the counts and the reasons of losses to standard error.

        Args:
            has_tokens: True if the tokens of the samples were counted.
        """
        trained = f", {self.trained_tokens:,} trained tokens, {self.too_long:,} cut" if has_tokens else ""
        refused = f"{self.refused:,} refused, {self.losses:,} losses"
        sys.stderr.write(f"{self.samples:,} samples{trained}, {refused}\n")
        for reason, count in self.reasons.most_common():
            sys.stderr.write(f"  {count:,} × {shorten(as_one_line(reason), 200)}\n")
