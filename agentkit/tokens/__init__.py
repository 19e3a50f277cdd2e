"""Token counters, which count the tokens of a request and estimate the tokens of individual messages.

The input of a counter is the keyword arguments of an SDK call, and the `WireLayout` that names the keys of these
arguments. The output is a `TokenCount`. Budgets use counters to decide which messages to omit. Counters download
nothing.

Read `counters` first, which has the base classes. Then read `text_counters` (estimate by characters),
`tiktoken_counter`, `model_encodings` (the encoding of each model), `encodings`, `hugging_face` (tokenizer files),
`remote` (endpoints of providers), and `usage_anchored` (reported usage). `request_parts` splits a request,
`estimate` estimates the tokens of a text, and `image_tokens` has the token prices of media.
"""

from __future__ import annotations

__all__: list[str] = []
