r"""`ResponseTemplate`: parses the text of a model's reply into a message.

Idea
    A response template is the inverse of a chat template. The template declares fields, such as the thinking, the
    tool calls and the content, and the markers before and after each field. The parser splits the text of a reply
    at these markers. The declaration has the format of `response_template` in transformers 5.

Example:
    >>> from agentkit.chat_templates import ResponseTemplate
    >>> qwen = ResponseTemplate.builtin("qwen3")
    >>> text = '<think>\nEasy.\n</think>\n\nHi.<tool_call>\n{"name": "f", "arguments": {"n": 1}}\n</tool_call>'
    >>> msg = qwen.parse(text)
    >>> [block.type for block in msg.blocks], msg.blocks[0].thinking, msg.blocks[2].input
    (['thinking', 'text', 'tool_use'], 'Easy.', {'n': 1})
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from agentkit.argument_checks import check_choice, check_option
from agentkit.chat_templates.responses.response_fields import THINKING_FIELDS, ResponseFields
from agentkit.errors import OptionError
from agentkit.json_values import as_list, as_object, make_json_safe
from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr
from agentkit.tools.tool import ToolLike, as_tools

if TYPE_CHECKING:
    from agentkit.chat_templates.responses.response_reader import ResponseReader
    from agentkit.chat_templates.responses.response_stream_parser import ResponseStreamParser
    from agentkit.replies.builder import ReplyBuilder
    from agentkit.replies.parser import ParserOptions

__all__ = ["RESPONSE_NAMES", "ResponseTemplate"]

RESPONSE_NAMES: Final = (
    "qwen3", "qwen3_coder", "llama_3", "mistral", "mistral_v11", "deepseek", "glm", "kimi", "gpt_oss",
)  # fmt: skip
"""Names of the built-in response templates."""

_MARKERS: Final = ("open", "close")
_SYNTAX: Final = re.compile(r"\\|\?P<\w+>")  # parts of a regular expression that no token contains


class ResponseTemplate:
    """Format of the text of a model's replies.

    The fields `content`, `tool_calls`, and `reasoning_content` (also `thinking` or `reasoning`) become blocks in
    the order of the text. Other fields become `metadata["reply"]["fields"]`.

    A region is the text between the start marker and the end marker of a field. One region of `tool_calls` can
    contain several calls. In a stream, the arguments of a call arrive in pieces in two cases:

    - The marker before the arguments contains the name of the tool, and the arguments are JSON text.
    - The call is the first call of a region, and its JSON text begins with `"name"`, followed by `"arguments"` or
      `"parameters"`. The id of such a call arrives at the end of the region.

    All other calls arrive at the end of their region. Examples are calls that are tags without JSON text (`glm`,
    `qwen3_coder`), and the calls of a list after the first call (`mistral`).

    Args:
        spec: Declaration as a dict. `start_anchor` (or `start_anchor_pattern`) is the text in the prompt after
            which a reply starts. `fields` has the fields by name, and `defaults` has their default values.

    Attributes:
        spec: The declaration.

    Raises:
        OptionError: The declaration is invalid.
        MissingExtraError: The package regex is not installed.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        check_option("response_template", spec, Mapping, "Pass a dict.")
        self.spec: Mapping[str, Any] = make_json_safe(dict(spec), "response_template")
        self._fields = ResponseFields(self.spec)

    @classmethod
    def builtin(cls, name: str) -> ResponseTemplate:
        """Returns a built-in response template.

        Args:
            name: `qwen3`, `qwen3_coder` (also for Qwen3.5), `llama_3`, `mistral`, `mistral_v11` (for tokenizer
                version 11 and later), `deepseek`, `glm`, `kimi` or `gpt_oss`. Tool calls are JSON text in `qwen3`,
                tags in `qwen3_coder`, and a JSON list in `mistral`.

        Raises:
            OptionError: There is no built-in response template with this name.
            MissingExtraError: The package regex is not installed.
        """
        check_choice("name", name, RESPONSE_NAMES)
        path = files("agentkit.chat_templates.responses").joinpath("builtin", f"{name}.json")
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @classmethod
    def from_folder(cls, folder: str | Path) -> ResponseTemplate:
        """Reads the response template from `tokenizer_config.json` in the folder of a tokenizer.

        Raises:
            OptionError: The file does not exist, cannot be read or is not valid JSON, or its response template is
                missing or invalid.
            MissingExtraError: The package regex is not installed.
        """
        from agentkit.chat_templates.template_files import read_json

        check_option("folder", folder, str | Path, "Pass the folder with the files of the tokenizer.")
        path = Path(folder) / "tokenizer_config.json"
        spec = as_object(read_json(path).get("response_template"))
        if not spec:
            reason = f"the file {shorten_repr(str(path), 200)} does not exist, or has no response_template"
            raise OptionError("folder", reason, "Use ResponseTemplate.builtin().")
        return cls(spec)

    def parse(
        self,
        text: str,
        prompt: str = "",
        tools: Sequence[ToolLike] = (),
        **options: Unpack[ParserOptions],
    ) -> Msg:
        """Parses the complete text of a reply.

        The message has all text, thinking and tool calls of the reply. White space before and after markers is
        removed. In the format `kv-lines`, lines without a separator are dropped. A field that does not become
        blocks keeps only its last value, unless the field declares `repeats`.

        Arguments of a tool call that are invalid JSON stay text, in `raw_input`. If the text of a call has more
        than a name, an id and arguments, the metadata of the block contains the text as `reply_text`. A call
        without a name becomes a text block. A call keeps the id that the model wrote. If the id is missing or
        repeated, a new id is computed from the prompt and the text before the call.

        Text after the end marker of the reply is in `metadata["reply"]["text_after_end"]`. Text that belongs to no
        field is in `metadata["reply"]["outside"]`, or becomes a text block if the reply has no field.

        Args:
            text: Text that the model wrote.
            prompt: Prompt that the model continued. The prompt can end with the start of the reply, such as
                `<think>`. This start is then part of the reply.
            tools: Tools that the request declared. The parser converts string arguments to the types in the
                schemas of the tools.
            **options: See `ParserOptions`.

        Raises:
            OptionError: `text` is not a string, an option is invalid, or the prompt does not contain the
                `start_anchor` of this template.
        """
        check_option("text", text, str, "Pass the text that the model wrote.")
        parser = self.stream_parser(prompt=prompt, tools=tools, **options)
        parser.feed(text)
        return parser.finish()

    def stream_parser(
        self, *, prompt: str = "", tools: Sequence[ToolLike] = (), **options: Unpack[ParserOptions]
    ) -> ResponseStreamParser:
        """Returns a parser that accepts the text of one reply in pieces. `parse` describes the options."""
        from agentkit.chat_templates.responses.response_stream_parser import ResponseStreamParser

        return ResponseStreamParser(self, prompt=prompt, tools=tools, **options)

    def reader(self, builder: ReplyBuilder, *, prompt: str = "", tools: Sequence[ToolLike] = ()) -> ResponseReader:
        """Returns a reader that adds the content of one reply to `builder`. Parsers of providers use this reader.

        Raises:
            OptionError: The prompt does not contain the `start_anchor` of this template.
        """
        from agentkit.chat_templates.responses.response_reader import ResponseReader

        check_option("prompt", prompt, str)
        start = self.find_start(prompt)
        named = {tool.name: tool for tool in as_tools(tools)}
        return ResponseReader(self._fields, builder, prompt=prompt, start=start, tools=named)

    def find_start(self, prompt: str) -> str:
        """Returns the text after the last `start_anchor` in a prompt, such as `<think>`.

        The reply starts with this text. Returns an empty string for an empty prompt.

        Raises:
            OptionError: The prompt is not empty, and does not contain the `start_anchor` of this template.
        """
        end = None
        for match in self._fields.anchor.pattern.finditer(prompt):
            end = match.end()
        if prompt and end is None:
            anchor = self.spec.get("start_anchor", self.spec.get("start_anchor_pattern"))
            reason = f"the prompt does not contain the start of a reply, {shorten_repr(anchor, 80)}"
            raise OptionError("prompt", reason, "Pass the prompt of this model, or omit `prompt`.")
        return prompt[end:] if prompt else ""

    def list_marker_texts(self) -> tuple[list[str], list[str]]:
        """Returns two lists: the markers that are texts, and the markers that are regular expressions.

        Backslashes and group names are removed from the regular expressions. The second list also has the text of
        the `start_anchor`.
        """
        fields: Sequence[Mapping[str, Any]] = [*self.spec["fields"].values()]
        texts = [text for field in fields for key in _MARKERS for text in _as_texts(field.get(key))]
        patterns = [self.spec.get("start_anchor", "")]
        patterns += [field.get(f"{key}_pattern", "") for field in fields for key in _MARKERS]
        return texts, [_SYNTAX.sub("", str(pattern)) for pattern in patterns]

    def has_fields(self, *, thinking: bool = False, calls: bool = False) -> bool:
        """Returns True if the template has fields for all requested content: thinking, tool calls or both.

        Returns True if no content is requested.
        """
        names = self._fields.fields.keys()
        has_thinking = not thinking or not THINKING_FIELDS.isdisjoint(names)
        return has_thinking and (not calls or "tool_calls" in names)

    def __reduce__(self) -> tuple[type[ResponseTemplate], tuple[dict[str, Any]]]:
        return type(self), (dict(self.spec),)

    def __repr__(self) -> str:
        return f"ResponseTemplate({shorten_repr(self.spec, 60)})"


def _as_texts(marker: object) -> list[str]:
    """Returns a list of the texts of a marker. The marker is a text, a list of texts, or None."""
    return [marker] if isinstance(marker, str) else [str(text) for text in as_list(marker)]
