"""`guard_text` changes a text that the DashScope SDK could treat as the path of a local file and upload."""

from __future__ import annotations

import re

__all__ = ["guard_text"]


def guard_text(text: str) -> str:
    """Adds a line break before a text that the DashScope SDK could treat as the path of a file.

    Returns the text with the line break, or any other text unchanged.

    The SDK uploads a local file if a text is the path of the file, or if a text begins with `file://`. Line breaks
    inside a text that begins with `file://` do not prevent the upload. The SDK never treats a text that begins
    with `http` as a path (dashscope 2.0, `check_and_upload_local`).
    """
    return f"\n{text}" if not text.startswith(("http", "\n")) and _can_be_path(text) else text


def _can_be_path(text: str) -> bool:
    """Returns True if a text is short enough to be the path of a file, or begins with `file:`.

    Each part between slashes must also be short enough for a file name. Spaces and dots at the end of a part are
    not counted, because Windows ignores these characters.
    """
    if len(text) <= _NAME_MAX or text.startswith("file:"):
        return True
    return len(text) <= _PATH_MAX and all(len(name.rstrip(" .")) <= _NAME_MAX for name in re.split(r"[/\\]", text))


_NAME_MAX, _PATH_MAX = 255, 4_096
