"""Capabilities of targets: the content that a provider, API and model accept, and the keys of their requests.

Each provider declares its rules as data: a `Capabilities` value with a `WireLayout`, and rows of `ModelFact` for
single models. Other packages read these rules, so their code names no provider and no key of a request.

Read first: `capabilities`. Then: `groups` (rules by topic), `media_rules`, `name_rules`; `wire_layout` and
`option_layout` (keys of requests), `prefix_digest`; `model_facts`, `model_rules`.
"""

from __future__ import annotations

__all__: list[str] = []
