"""Token counters, which count the tokens of a request and estimate the tokens of individual messages.

The input of a counter consists of the keyword arguments of an SDK call, and the `WireLayout` that names the keys
of these arguments. The output is a `TokenCount`. Budgets use counters to decide which messages to omit. Counters
download nothing.

Read `counters` first, which has the base classes. Then read the modules with the counters:

- `text_counters` estimates the number of tokens from the characters of a text.
- `tiktoken_counter` counts with the encoding of a model (see also `model_encodings` and `encodings`).
- `hugging_face` counts with the tokenizer file of a local model, which `tokenizer_file` reads.
- `remote` counts with an endpoint of a provider.
- `usage_anchored` adds an estimate to the usage that a provider reported.

`request_parts` splits a request, `estimate` estimates the tokens of a text, and `media_tokens` has the token
prices of media.
"""

from __future__ import annotations

__all__: list[str] = []
