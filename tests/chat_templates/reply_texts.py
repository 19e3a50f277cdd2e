"""Texts of replies in the formats of several models, whole and as pieces for random replies."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from agentkit import Msg, TextBlock, ThinkingBlock, Tool, ToolUseBlock

__all__ = ["CITY", "EMOJI", "REPLIES", "Content", "reply_pieces", "reply_texts", "summarize"]

Content: TypeAlias = tuple[list[str], list[str], list[tuple[str, dict[str, Any]]]]
"""Thinking, texts, and names and arguments of tool calls."""

CITY: Final = Tool(
    "f",
    "Weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}},
)
EMOJI: Final = "\ud83d"  # the first half of an emoji

_DEEPSEEK: Final = (
    "<think>hm</think>\n\nok<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n"
    '{"city": "Rome"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```'
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"
)
_DEEPSEEK_31: Final = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
_KIMI: Final = (
    "<think>hm</think>ok<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
    '{"city": "Rome"}<|tool_call_end|><|tool_calls_section_end|><|im_end|>'
)
_ROME: Final = ("f", {"city": "Rome"})
_HI: Final[Content] = ([], ["Hi"], [])

REPLIES: Final[dict[str, dict[str, Content]]] = {
    "qwen3": {
        '<think>\nhm\n</think>\n\nok<tool_call>\n{"name": "f", "arguments": {"city": "Rome"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "f", "arguments": {"city": "Rome"}}\n</tool_call><|im_end|>\n': (
            ["hm"],
            ["ok"],
            [_ROME, _ROME],
        ),
        "Hi<|im_end|>": _HI,
        "Hi": _HI,
    },
    "qwen3_coder": {
        "<think>\nhm\n</think>\n\nok<tool_call>\n<function=f>\n<parameter=city>\nRome\n</parameter>\n<parameter=n>\n3"
        "\n</parameter>\n</function>\n</tool_call><|im_end|>": (["hm"], ["ok"], [("f", {"city": "Rome", "n": 3})]),
        "Hi<|im_end|>": _HI,
    },
    "llama_3": {
        '{"name": "f", "parameters": {"city": "Rome"}}<|eot_id|>': ([], [], [_ROME]),
        '<|python_tag|>{"type": "function", "name": "f", "parameters": {"a": {"b": 1}}}<|eom_id|>': (
            [],
            [],
            [("f", {"a": {"b": 1}})],
        ),
        '{"name": "f", "parameters": {"city": "Rome"}}': ([], [], [_ROME]),
        "Hi<|eot_id|>": _HI,
        'Hi {"b": 1}': ([], ['Hi {"b": 1}'], []),
    },
    "mistral": {
        '[TOOL_CALLS][{"name": "f", "arguments": {"city": "Rome"}, "id": "abcdefghi"}, '
        '{"name": "g", "arguments": {}}]</s>': ([], [], [_ROME, ("g", {})]),
        "[THINK]hm[/THINK]Hi</s>": (["hm"], ["Hi"], []),
    },
    "mistral_v11": {
        '[THINK]hm[/THINK]ok[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"city": "Rome"}[TOOL_CALLS]g[ARGS]{}</s>': (
            ["hm"],
            ["ok"],
            [_ROME, ("g", {})],
        ),
        "Hi</s>": _HI,
    },
    "deepseek": {
        _DEEPSEEK: (["hm"], ["ok"], [_ROME, ("g", {})]),
        _DEEPSEEK_31: ([], [], [("f", {})]),
        "Hi<｜end▁of▁sentence｜>": _HI,
    },
    "glm": {
        "\n<think>hm</think>\nok\n<tool_call>f\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
        "<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n</tool_call><|observation|>": (
            ["hm"],
            ["ok"],
            [("f", {"city": "Rome", "n": 3})],
        ),
        "<tool_call>f<arg_key>city</arg_key><arg_value>Rome</arg_value></tool_call>": ([], [], [_ROME]),
        "Hi<|user|>": _HI,
    },
    "kimi": {_KIMI: (["hm"], ["ok"], [_ROME]), "Hi<|im_end|>": _HI},
    "gpt_oss": {
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>": (
            ["hm"],
            ["Hi"],
            [],
        ),
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.f<|channel|>commentary json"
        '<|message|>{"city": "Rome"}<|call|>': (["hm"], [], [_ROME]),
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"city": "Rome"}': ([], [], [_ROME]),
        "<|channel|>final<|message|>Hi": _HI,
    },
}
"""Replies of each built-in response template, with their content."""

_COMMON: Final = (
    "Hi",
    " ",
    "\n",
    "<",
    "</",
    "[",
    "{",
    "}",
    "é你",
    '"',
    "\\",
    EMOJI,
    "\ude00",
    '{"name": "f", "arguments": {"city": "Rome"}}',
    '{"name": "f", "parameters": {"city": "</think> <tool_call>"}}',
    '{"city": "</tool_call><|im_end|>[TOOL_CALLS]"}',
    "{}",
    "f",
)
_MARKERS: Final[dict[str, tuple[str, ...]]] = {
    "qwen3": ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_end|>", "<|im_start|>"),
    "qwen3_coder": (
        "<think>",
        "</think>",
        "<tool_call>",
        "<function=f>",
        "</function>",
        "</tool_call>",
        "<|im_end|>",
        "<parameter=city>",
        "</parameter>",
    ),
    "llama_3": ('{"name": "f", "parameters": ', "}<|eot_id|>", "<|eot_id|>", "<|python_tag|>", ";"),
    "mistral": ("[TOOL_CALLS]", "[THINK]", "[/THINK]", "</s>", '[{"name": "f", "arguments": {}}]'),
    "mistral_v11": ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]", "</s>"),
    "deepseek": (
        "<think>",
        "</think>",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n",
        "\n```<｜tool▁call▁end｜>",
        "<｜tool▁call▁begin｜>f<｜tool▁sep｜>",
        "<｜tool▁calls▁end｜>",
        "<｜end▁of▁sentence｜>",
    ),
    "glm": (
        "<think>",
        "</think>",
        "<tool_call>f\n",
        "</tool_call>",
        "<|user|>",
        "<|observation|>",
        "<arg_key>city</arg_key>\n",
        "<arg_value>",
        "</arg_value>",
    ),
    "kimi": (
        "<think>",
        "</think>",
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>functions.f:0",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<|tool_calls_section_end|>",
        "<|im_end|>",
    ),
    "gpt_oss": (
        "<|channel|>analysis<|message|>",
        "<|end|>",
        "<|start|>assistant",
        "<|return|>",
        "<|call|>",
        "<|channel|>final<|message|>",
        " to=functions.f<|channel|>commentary json<|message|>",
    ),
}


def reply_pieces(name: str) -> st.SearchStrategy[list[str]]:
    """Draws pieces of a reply: markers of a built-in response template, and parts of texts and JSON."""
    return st.lists(st.sampled_from((*_MARKERS[name], *_COMMON)), max_size=12)


def reply_texts(name: str) -> st.SearchStrategy[str]:
    """Draws replies, most of which are damaged."""
    return reply_pieces(name).map("".join)


def summarize(msg: Msg) -> Content:
    """Returns the thinking, the texts, and the calls of a message."""
    thinking = [block.thinking for block in msg.blocks if isinstance(block, ThinkingBlock)]
    texts = [block.text for block in msg.blocks if isinstance(block, TextBlock)]
    calls = [(block.name, block.input) for block in msg.blocks if isinstance(block, ToolUseBlock)]
    return thinking, texts, calls
