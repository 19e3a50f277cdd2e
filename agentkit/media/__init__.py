"""Media in messages: reading files, fetching URLs, resizing images, and checking them against a target's rules.

Only this package reads the files and fetches the URLs that messages name. The input is messages and the
`Capabilities` of a target, which is the provider, API and model of a request. The output is a `ResolvedMedia`. It
maps each media source to its content, to a URL that the target opens itself, or to the reason why the content is
missing. I/O and slow work run in worker threads.

Read `loading` first; it does all I/O for one request. Then read `resolution` (`ResolvedMedia`), `files`,
`fetching`, `downloading`, `addresses`, `cache` and `resizing`. `acceptance` checks media against the rules of a
target.
"""

from __future__ import annotations

__all__: list[str] = []
