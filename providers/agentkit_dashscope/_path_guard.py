"""Protection of texts that the DashScope SDK would mistake for paths of local files."""

from __future__ import annotations

import re

__all__ = ["guard_text"]


def guard_text(text: str) -> str:
    """Returns the text, with a line break before it if the SDK might mistake the text for a path.

    The SDK uploads a file if the text begins with `file://`, even with line breaks in it, or if the text is the
    path of a file. The SDK skips texts that begin with `http` (dashscope 2.0, `check_and_upload_local`).
    """
    return f"\n{text}" if not text.startswith(("http", "\n")) and _can_be_path(text) else text


def _can_be_path(text: str) -> bool:
    """Returns False if the text is longer than PATH_MAX, or has a name that is longer than NAME_MAX.

    Windows ignores blanks and dots at the end of a name.
    """
    if len(text) <= _NAME_MAX or text.startswith("file:"):
        return True
    return len(text) <= _PATH_MAX and all(len(name.rstrip(" .")) <= _NAME_MAX for name in re.split(r"[/\\]", text))


_NAME_MAX, _PATH_MAX = 255, 4_096
