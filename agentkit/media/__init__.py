"""Media in messages: reads files, fetches URLs, resizes images, and checks media against the rules of a target.

A target is the provider, API and model of a request. Only this package reads the files and fetches the URLs in
messages. The input consists of messages and the `Capabilities` of a target. The output is a `ResolvedMedia`. A
`ResolvedMedia` maps each media source to its content, to a URL that the target opens itself, or to the reason why
the content is missing. I/O and slow work run in worker threads.

Read `loading` first, which does all I/O for one request. Then read `resolution` (`ResolvedMedia`), `files`,
`fetching`, `safe_http`, `addresses`, `cache` and `resizing`. `acceptance` checks media against the rules of a
target.
"""

from __future__ import annotations

__all__: list[str] = []
