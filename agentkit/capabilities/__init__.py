"""Capabilities of targets: the content that a provider, API and model accept, and the keys of their requests.

Each provider declares its rules as data: a `Capabilities` value with a `WireLayout`, and `ModelFact` rows for
single models. Other packages read these rules, so their code names no provider and no key of a request.

Read `capabilities` first, then `groups`, `media_rules` and `name_rules`. The keys of requests are in `wire_layout`
and `option_layout`, and `prefix_digest` uses them. Rules of single models are in `model_facts` and `model_rules`.
"""

from __future__ import annotations

__all__: list[str] = []
