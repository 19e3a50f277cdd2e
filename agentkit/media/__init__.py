"""Media of a conversation: reading files, fetching URLs, resizing images, and the media that a target accepts.

This is the only package that reads files and fetches URLs of messages. It takes messages and the `Capabilities` of
a target. It returns a `ResolvedMedia`: for each source the content, a URL that the target opens itself, or the
reason why there is no content. I/O and slow work run in worker threads.

Read first: `loading`, which does all I/O for one request. Then: `resolution` (`ResolvedMedia`), `files`,
`fetching`, `downloading` and `addresses`, `cache`, `resizing`, and `acceptance`, the rules of a target.
"""

from __future__ import annotations

__all__: list[str] = []
