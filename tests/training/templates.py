"""Chat templates and tokenizers of the training tests."""

from __future__ import annotations

from typing import Any, Final, cast

import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers

from agentkit.chat_templates import ChatTemplate
from agentkit.training import TokenizedSample

__all__ = ["MARKED", "THINKING", "UNMARKED", "create_tokenizer", "decode", "encode", "list_trained"]

_CALLS: Final = (
    "{%- for call in message.tool_calls or [] %}<tool_call>"
    "{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}</tool_call>{% endfor %}"
)
_BODY: Final = (
    "{%- if message.reasoning_content %}<think>\n{{ message.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{- message.content }}" + _CALLS + "<|im_end|>"
)
_TOOLS: Final = "{%- if tools %}<|im_start|>tools\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
_PROMPT: Final = "{%- if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
_EOS: Final = {"eos_token": "<|im_end|>"}

MARKED: Final = ChatTemplate(
    _TOOLS + "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' %}{%- generation %}" + _BODY + "{%- endgeneration %}"
    "{%- else %}{{- message.content }}<|im_end|>{%- endif %}{{- '\\n' }}{%- endfor %}" + _PROMPT,
    name="marked",
    special_tokens=_EOS,
)
"""ChatML that marks replies."""

UNMARKED: Final = ChatTemplate(
    _TOOLS + "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}"
    "{%- if message.role == 'assistant' %}" + _BODY + "{%- else %}{{- message.content }}<|im_end|>{%- endif %}"
    "{{- '\\n' }}{%- endfor %}" + _PROMPT,
    name="unmarked",
    special_tokens=_EOS,
)
"""ChatML that does not mark replies."""

THINKING: Final = ChatTemplate(
    (UNMARKED.jinja or "")
    .replace(
        "{%- if message.reasoning_content %}",
        "{%- if message.reasoning_content and loop.index0 > last.index %}",
    )
    .replace(
        "{%- for message in messages %}",
        "{%- set last = namespace(index=0) %}{%- for message in messages %}{%- if message.role == 'user' %}"
        "{%- set last.index = loop.index0 %}{%- endif %}{%- endfor %}{%- for message in messages %}",
        1,
    ),
    name="thinking",
    special_tokens=_EOS,
)
"""ChatML that omits thinking before the last message of a user, as the template of Qwen3 does."""


def encode(text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Encodes each character as one token."""
    return [ord(character) for character in text], [(index, index + 1) for index in range(len(text))]


def decode(ids: list[int]) -> str:
    """Returns the text of the tokens of `encode`."""
    return "".join(map(chr, ids))


def list_trained(tokenized: TokenizedSample) -> list[str]:
    """Returns the trained texts of a sample that `encode` encoded."""
    return [decode(tokenized.ids[start:end]) for start, end in tokenized.spans]


def create_tokenizer(texts: list[str], *, trim: bool = False, lstrip: bool = False, rstrip: bool = False) -> Any:
    """Returns a byte-level tokenizer that is trained on texts."""
    tokenizer = cast("Any", tokenizers).Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if trim:
        tokenizer.post_processor = cast("Any", tokenizers).processors.ByteLevel(trim_offsets=True)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    words = ("<|im_start|>", "<|im_end|>")
    tokenizer.add_special_tokens([AddedToken(word, special=True, lstrip=lstrip, rstrip=rstrip) for word in words])
    return tokenizer
