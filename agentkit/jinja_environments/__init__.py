"""Sandboxed jinja environments for prompts and chat templates, and the texts of JSON values in templates.

The environments run templates in jinja's sandbox. A template has no access to private attributes, modules and
files. Templates of prompts are strict, so an undefined name is an error. Chat templates of models are lenient, as
in transformers.

Limits. Rendered texts and results of operators have at most 10,000,000 characters or items. A width or
count that a template passes to a filter or string method is at most 100,000, which is also jinja's limit for
`range`. A loop keeps only the values that the template stores, so these limits also bound the memory of a loop.
There is no limit for time, or for the results of `replace` and `join`. Render templates of unknown origin in a
process with limited time and memory.

Read `environments` first. `filters` has the filters `yaml` and `json`.
"""

from __future__ import annotations

from agentkit.jinja_environments.environments import model_environment, prompt_environment
from agentkit.jinja_environments.filters import TemplateRecord
from agentkit.jinja_environments.yaml_texts import dump_yaml

__all__ = ["TemplateRecord", "dump_yaml", "model_environment", "prompt_environment"]
