"""Rules for requests to each target. A target is a provider, its API and a model.

Each provider declares its rules as data, in a `Capabilities` object with a `WireLayout`. A `ModelFact` declares
different rules for some models of the provider. Other packages read these rules, so that their code does not
depend on any provider or on the keys of its requests.

Read `capabilities` first, then `groups`, `media_rules` and `name_rules`. The module `wire_layout` declares the
keys of requests, which `prefix_digest` uses. The rules of single models are in `model_names`, `model_facts` and
`local_model_rules`.
"""

from __future__ import annotations

__all__: list[str] = []
