"""Sandboxed jinja environments for prompts and chat templates, with filters that write JSON and YAML.

The environments run templates in jinja's sandbox. A template has no access to private attributes, modules or
files. Templates of prompts are strict, so an undefined name is an error. Chat templates of models are lenient, as
in transformers, so an undefined name prints nothing.

Limits. A rendering has at most 100,000,000 steps, so it needs at most a few seconds and 500 MB of memory.

| operation | steps |
|---|---|
| a node of the template's syntax tree runs | 3 |
| a function, a macro or an uncommon method is called | 100 |
| a text is created | 1 for each character |
| a list or dict is created | 100, and 20 for each item |
| a text is read | 1 for every 8 characters |

Nodes in loops that print nothing count toward a second limit of the same size. The values that such loops create
count toward the first limit. Both limits grow by 50 steps for each pair of items of the longest list among the
variables, usually the messages. A template can therefore compare each message with all other messages. A rendering
of 2,000 messages can thus need three times the time and the memory.

These limits apply too:

- A text has at most 10,000,000 characters. This limit also applies to the rendered text.
- All texts of a list or dict together have at most 10,000,000 characters. A text that occurs twice counts twice.
  Each item counts as 20 further characters. An integer counts as the number of its digits, but at least as 20.
- A width or count that a template passes to a filter or method is at most 100,000, as in jinja's `range`.
- An integer has at most 1,000 bits. Calls of macros have at most 200 nested levels, and so do lists and dicts.
- Chat templates have at most 100,000 characters.
- There are no random functions, and no methods that create bytes, such as `encode`.

The steps depend only on the template and the values. So a rendering that exceeds a limit on one machine exceeds
the limit on all machines.

To read the source, start with `environments`. `sandbox` has the rules for attributes and calls. `limits` counts
the steps. `template_code` writes the Python code of templates. `filters` has the filters `yaml`, `json` and
`tojson`. `chat_variables` has the variables of chat templates, and `chat_rendering` renders chat templates.
`prefix_rendering` renders `messages[:1]`, `messages[:2]` and so on. `recorded_template` and `loop_recorder` let
these renderings skip iterations that would print the same text.

The package jinja2 is optional. `environments`, `chat_rendering` and `prefix_rendering` import jinja2, and modules
that need jinja2, only inside functions.
"""

from __future__ import annotations

from agentkit.jinja_environments.environments import model_environment, prompt_environment
from agentkit.jinja_environments.filters import TemplateRecord
from agentkit.jinja_environments.yaml_texts import dump_yaml

__all__ = ["TemplateRecord", "dump_yaml", "model_environment", "prompt_environment"]
