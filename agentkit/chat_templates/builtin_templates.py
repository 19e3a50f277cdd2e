r"""Built-in chat templates, as files in the folder `builtin`.

`inst`, `im_start` (also named `chatml`), `llama_2`, `llama_3`, `phi_4` and `zephyr` write the same texts as
`LangChain.Utils.ChatTemplates` (Elixir, 0.9). `mistral`, `torchtune_llama_2` and `torchtune_chatml` write the same
texts as torchtune. Some of these templates differ from the layouts that the makers of the models publish, or
lack features:

- `llama_3`: the template writes a line break after `<|begin_of_text|>` and after `<|eot_id|>`. Meta's layout has
  no line breaks there.
- `phi_4`: the template opens an assistant turn after each message of a user, even if `add_generation_prompt` is
  False. The template writes no line break between `<|im_sep|>` and the content. It ends each text with a line
  break, so a prompt ends with `<|im_sep|>` and a line break.
- Only `im_start`, `llama_3` and `zephyr` read `add_generation_prompt`. The other templates ignore this variable.
- No template writes tool calls. `inst`, `llama_2`, `phi_4` and `zephyr` write no tool results either.
- `torchtune_llama_2` writes the system text before each message of a user. In Meta's layout and
  in `llama_2`, the system text is only before the first message of a user.
- `torchtune_chatml` writes no `<|im_end|>` after an empty reply at the end of the conversation.
- `mistral` refuses system messages.
- `inst`, `llama_2` and `llama_3` write the bos token. `mistral` and `torchtune_llama_2` omit this token, because
  the tokenizer adds the token. The other layouts have no bos token.

For the exact layout of a model, use the template in the files of the model (`ChatTemplate.from_folder`).

>>> from agentkit import Msg
>>> from agentkit.chat_templates import ChatTemplate
>>> ChatTemplate.builtin("inst").render([Msg("Bob", "Hello.", "user"), Msg("Friday", "Hi.", "assistant")]).text
'<s>[INST] Hello. [/INST]Hi.</s> '
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Final

from agentkit.argument_checks import check_choice
from agentkit.chat_templates.chat_template import ChatTemplate

__all__ = ["BUILTIN_NAMES", "load_builtin"]

_LANGCHAIN: Final[dict[str, Any]] = {"validates": True, "text_separator": "\n\n"}
_TORCHTUNE: Final[dict[str, Any]] = {"text_separator": ""}
_LLAMA_2_TOKENS: Final = frozenset(("<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"))
_MISTRAL_TOKENS: Final = frozenset(
    ("<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]")
) | {"[TOOL_RESULTS]", "[/TOOL_RESULTS]"}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "inst": {**_LANGCHAIN, "special_tokens": {"bos_token": "<s>"}},
    "im_start": _LANGCHAIN,
    "llama_2": {**_LANGCHAIN, "special_tokens": {"bos_token": "<s>"}},
    "llama_3": {**_LANGCHAIN, "special_tokens": {"bos_token": "<|begin_of_text|>"}},
    "phi_4": _LANGCHAIN,
    "zephyr": _LANGCHAIN,
    "mistral": {**_TORCHTUNE, "adds_bos": True, "control_tokens": _MISTRAL_TOKENS},
    "torchtune_llama_2": {**_TORCHTUNE, "adds_bos": True, "control_tokens": _LLAMA_2_TOKENS},
    "torchtune_chatml": _TORCHTUNE,
}
"""Arguments of `ChatTemplate` for each built-in template.

LangChain writes a blank line between two text blocks of a message. torchtune writes no text between them.
`special_tokens` has the bos token that a template writes. `adds_bos` is True if the tokenizer adds the token
instead. If `adds_bos` is True, `control_tokens` lists all control tokens, because the template text contains only
some of the tokens.
"""

BUILTIN_NAMES: Final = ("chatml", *_OPTIONS)
"""Names of the built-in templates. `chatml` is another name of `im_start`."""


def load_builtin(name: str) -> ChatTemplate:
    """Returns a built-in template by its name.

    Raises:
        OptionError: There is no built-in template with this name.
    """
    check_choice("name", name, BUILTIN_NAMES)
    return _read("im_start" if name == "chatml" else name)


@cache
def _read(name: str) -> ChatTemplate:
    text = files("agentkit.chat_templates").joinpath("builtin", f"{name}.jinja").read_text(encoding="utf-8")
    return ChatTemplate(text, name=name, **_OPTIONS[name])
