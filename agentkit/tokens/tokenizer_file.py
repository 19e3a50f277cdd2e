"""`read_tokenizer`: reads a `tokenizer.json` with the package tokenizers of Hugging Face."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from agentkit.errors import MissingExtraError, OptionError
from agentkit.reprs import shorten_repr

__all__ = ["read_tokenizer"]


def read_tokenizer(file: Path, place: str) -> Any:
    """Returns the `tokenizers.Tokenizer` that a file describes. Truncation and padding are off.

    Args:
        file: Path of a `tokenizer.json`.
        place: Name of the option in errors.

    Raises:
        MissingExtraError: The package tokenizers is not installed.
        OptionError: The file cannot be read, or does not describe a tokenizer.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("tokenizers", "tokens", "Reading a tokenizer file") from None
    try:
        tokenizer = cast("Any", Tokenizer).from_file(str(file))
    except Exception as error:  # the package tokenizers has no class for its errors
        reason = f"the file {shorten_repr(str(file), 200)} has no tokenizer ({error})"
        raise OptionError(place, reason, "Download the file again.") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
