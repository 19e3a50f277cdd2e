"""Token counters: the number of tokens of a request, and the weights of single messages.

A counter takes the keyword arguments of an SDK's call and the `WireLayout` of their provider, and returns a
`TokenCount`. Budgets use counters to find what to cut. Nothing is downloaded.

Read first: `counters`, the base classes. Then: `text_counters` (estimate by characters), `tiktoken_counter` and
`encodings` (ranks), `hugging_face` (tokenizer files), `remote` (endpoints of providers), `usage_anchored`
(reported usage). `request_parts` splits a request, `estimate` counts a text, `media_costs` prices media.
"""

from __future__ import annotations

__all__: list[str] = []
