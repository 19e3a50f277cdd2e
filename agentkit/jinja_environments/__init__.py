"""Sandboxed jinja environments for prompts and chat templates, and the texts of JSON values in templates.

The environments run templates in jinja's sandbox. A template has no access to private attributes, modules and
files. Templates of prompts are strict, so an undefined name is an error. Chat templates of models are lenient, as
in transformers.

Limits. A rendering has at most 100,000,000 steps. Each node of the template that runs counts 3 steps, a call of a
function 100, each character of a new text 1, each item of a new list 20, and each 8 characters that an operation
reads 1. So the steps limit the time and the memory of a rendering. The largest number of steps takes a few seconds
and less than 500 MB. These limits apply too:

- A text, also the rendered text, has at most 10,000,000 characters. So have all texts of a list or dict together,
  where a text that occurs twice counts twice and each item counts 20 characters.
- A width or count that a template passes to a filter or method is at most 100,000, as in jinja's `range`.
- A number has at most 100,000 bits. Calls of macros and values are nested in at most 200 levels.
- Chat templates have at most 1,000,000 characters.
- There are no random functions, and no methods for bytes, such as `encode`.

The steps depend only on the template and the values, so equal renderings have equal results on all machines.

Read `environments` first. `limits` counts the steps, `template_code` writes the Python code of templates,
`sandbox_access` has the rules for attributes and calls, and `filters` has the filters `yaml` and `json`.
"""

from __future__ import annotations

from agentkit.jinja_environments.environments import model_environment, prompt_environment
from agentkit.jinja_environments.filters import TemplateRecord
from agentkit.jinja_environments.yaml_texts import dump_yaml

__all__ = ["TemplateRecord", "dump_yaml", "model_environment", "prompt_environment"]
