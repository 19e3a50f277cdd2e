"""`PromptAdapter`: writes the messages of a typed prompt with templates, and reads the reply with a parser.

The adapter corresponds to the queries of Delphyne 0.15. Each template has a kind: `system`, `instance` (the user
message), `feedback`, or any other name that is passed to `format_prompt`. The text of a template is the first of
these that exists:

1. the file `{Name}.{kind}.jinja` in the folders of `templates`, where `Name` is the name of the signature;
2. the option `system`, `user` or `feedback` of the adapter;
3. the attribute `__{kind}_prompt__` of the signature, without indentation and outer white space;
4. the default: the instructions of the signature for `system`, the inputs as YAML for `instance`, and the
   description of the problem for `feedback`. The kinds `repair` and `more` have defaults too.

All these texts are templates, including the instructions. Their variables are:

- `query`: the inputs by name;
- `mode`, `available_modes` and `params`: see `PromptAdapter`;
- `format`: the format of the reply, with the keys `where`, `what`, `schema` and `instructions` (None if the
  signature has no outputs);
- `example` (True in an example) and `example_id` (1 in the first example, and None in a request);
- `data`: see `PromptTemplates`;
- `globals`: the attribute `globals` of the signature, if there is one;
- `feedback`: the `Feedback`, for the kinds `feedback` and `repair` only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from agentkit.argument_checks import check_option
from agentkit.budget.units import EXAMPLE_MARK
from agentkit.capabilities.capabilities import Capabilities
from agentkit.errors import OptionError, ParseError
from agentkit.formatting.formatter import RequestOptions
from agentkit.messages.blocks import Block, TextBlock, ToolUseBlock
from agentkit.messages.message import Msg, build_part
from agentkit.messages.parsed_reply import EARLY_ENDS
from agentkit.prompts.adapter import Adapter, HistoryItem
from agentkit.prompts.examples import Example
from agentkit.prompts.feedback import Feedback
from agentkit.prompts.field_content import Segment, join_segments, write_content
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.lenient_json import require_json_repair
from agentkit.prompts.parser import Parser
from agentkit.prompts.parsers import structured
from agentkit.prompts.prefix_inputs import get_prefix
from agentkit.prompts.prompt_inputs import read_inputs
from agentkit.prompts.prompt_modes import PromptMode, check_mode
from agentkit.prompts.prompt_templates import PromptTemplates
from agentkit.prompts.prompt_texts import get_empty_templates
from agentkit.prompts.prompt_turns import PromptTurns, is_usable
from agentkit.prompts.reply_texts import get_reply_text
from agentkit.prompts.signature import Signature
from agentkit.prompts.template_values import copy_values
from agentkit.prompts.type_names import is_tool_calls
from agentkit.tools.tool import ToolLike, as_tools

__all__ = ["PromptAdapter"]

_AnySignature: TypeAlias = type[Signature[Any]]


@dataclass(frozen=True, kw_only=True)
class PromptAdapter(Adapter):
    """Adapter that writes prompts with templates.

    The messages are: system prompt, examples, history, user message, prefix. The prefix is a conversation that
    follows the user message. The prefix is the value of an input with the name `prefix` and a type such as
    `list[Msg | Feedback]`. The prefix and inputs of the type `History` are not part of the variable `query`.

    If the template of the user message has a line `!<assistant>`, the text after this line is the priming. The
    priming becomes an assistant message after the user message. If a template prints a media block, the message
    contains the block.

    A mode is another way to answer, with its own prompts and its own format of the reply. `modes` has an adapter
    for each mode. The adapter of a mode writes the requests and examples in this mode, and parses the replies.
    The adapter of a mode needs only the options that differ from the options of the outer adapter.

    With the parser `tool_call`, the reply of an example is a tool call. The result of this tool call is the text
    "Done.", because APIs accept no tool call without a result.

    Attributes:
        system: Template of the system prompt. An empty string omits the system prompt. None means the default (see
            `agentkit.prompts.prompt_adapter`).
        user: Template of the user message. None means the default.
        feedback: Template of a `Feedback`. None means the default.
        parser: Parser of the replies. None means `structured`. A parser without a type, such as `yaml`, gets the
            type of the outputs. With several outputs, the value is an object with one key for each output.
        modes: Maps the name of each mode to its adapter.
        mode: Name of the mode of requests. None means that this adapter itself is used. The argument `mode` of
            `ask` and `stream` replaces this option.
        templates: Folders with templates and data. None means that there are no folders.
        params: Value of the variable `params` in the templates: JSON values by name. The `params` of the mode's
            adapter are added.
        native_tools: See `Adapter`. False is allowed only for signatures without an output for tool calls.
        native_reasoning: See `Adapter`.
        native_citations: See `Adapter`.
        fallback: See `Adapter`.
        order: See `Adapter`.
        observe: See `Adapter`.

    Raises:
        OptionError: An option is invalid.
        MissingExtraError: A package of the extra `prompts` is not installed.

    Example:
        >>> from agentkit.prompts import Signature
        >>> class Tide(Signature[int]):
        ...     "Tell the height of the tide in centimeters."
        ...     harbor: str
        >>> adapter = PromptAdapter(user="Harbor: {{ query.harbor }}")
        >>> [msg.text for msg in adapter.format(Tide, {"harbor": "Brest"})]
        ['Tell the height of the tide in centimeters.', 'Harbor: Brest']
        >>> adapter.parse(Tide, '{"value": 640}')
        {'answer': 640}
    """

    system: str | None = None
    user: str | None = None
    feedback: str | None = None
    parser: Parser[Any] | None = None
    modes: Mapping[str, PromptAdapter] = field(default_factory=dict[str, "PromptAdapter"], hash=False)
    mode: str | None = None
    templates: PromptTemplates | None = None
    params: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    native_tools: bool = True
    order: Literal["complete_last", "given"] = "given"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("system", "user", "feedback", "mode"):
            check_option(name, getattr(self, name), str | None)
        check_option("parser", self.parser, Parser | None, "Pass a parser, such as `structured` or `yaml`.")
        check_option("templates", self.templates, PromptTemplates | None, "Pass PromptTemplates(folder).")
        check_option("params", self.params, Mapping, "Pass a dict of JSON values.")
        check_option("modes", self.modes, Mapping, "Pass a dict that maps names of modes to adapters.")
        object.__setattr__(self, "params", copy_values(self.params, "params"))
        object.__setattr__(self, "modes", dict(self.modes))
        for name, adapter in self.modes.items():
            check_mode(name, adapter, PromptAdapter)
        self._find_mode(self.mode)
        get_empty_templates()  # raises MissingExtraError if a package is not installed
        require_json_repair()

    # -- modes -------------------------------------------------------------------------------------------------

    def select_mode(self, mode: str | None) -> PromptAdapter:
        """Returns the adapter for `mode`, which is a key of `modes`. If `mode` is None, returns this adapter.

        Raises:
            OptionError: `modes` has no such mode.
        """
        self._find_mode(mode)
        return self if mode is None else replace(self, mode=mode)

    def _find_mode(self, name: str | None, place: str = "mode") -> PromptMode:
        """Returns a mode. If an option of the mode's adapter is None, the option of this adapter is used.

        If `name` is None, the mode has all options of this adapter.
        """
        inner = self if name is None else self._find_adapter(name, place)

        def get_option(option: str) -> Any:
            value = getattr(inner, option)
            return getattr(self, option) if value is None else value

        parser = get_option("parser")
        options = {"system": "system", "instance": "user", "feedback": "feedback"}
        return PromptMode(
            name,
            (None, *self.modes),
            structured if parser is None else parser,
            get_option("templates") or get_empty_templates(),
            {kind: get_option(option) for kind, option in options.items()},
            {**self.params, **inner.params},
        )

    def _find_adapter(self, mode: str, place: str) -> PromptAdapter:
        check_option(place, mode, str | None)
        if mode not in self.modes:
            names = ", ".join(self.modes)
            advice = f"Use one of: {names}." if names else "Omit the mode, because the adapter has no modes."
            raise OptionError(place, f"there is no mode {mode!r}", advice)
        return self.modes[mode]

    def _create_turns(self, signature: _AnySignature) -> PromptTurns:
        return PromptTurns(signature, self._find_mode)

    # -- messages ----------------------------------------------------------------------------------------------

    def format(
        self,
        signature: _AnySignature,
        inputs: Mapping[str, Any] | Signature[Any],
        *,
        examples: Iterable[Example] = (),
        history: Iterable[HistoryItem] = (),
        tools: Sequence[ToolLike] = (),
    ) -> list[Msg]:
        """Returns the messages of a request. See `Adapter.format`.

        Raises:
            OptionError: An argument is invalid, or a template needs a value that JSON cannot represent.
            MessageError: A value of an input or of an example does not fit its type.
            TemplateError: A template is invalid or calls `fail`, or a variable or an included template is missing.
        """
        as_tools(tools)
        shown = self.select_fields(signature)
        values = read_inputs(shown, inputs)
        prompt = self._find_mode(self.mode).create_texts(shown, values)
        turns = self._create_turns(shown)
        system = prompt.render("system")
        msgs = [Msg("system", system, "system")] if system else []
        msgs += self.format_demos(shown, examples)
        msgs += self.format_conversation_history(shown, values)
        for index, item in enumerate(history):
            msgs += turns.format_history_item(prompt, item, f"history[{index}]")
        msgs += [replace(msg, pinned=True) for msg in prompt.render_user()]
        for index, item in enumerate(get_prefix(shown, values)):
            msgs += turns.format_history_item(prompt, item, f"{signature.__name__}.prefix[{index}]")
        return msgs

    def conversation(
        self,
        signature: _AnySignature,
        inputs: Mapping[str, Any] | Signature[Any],
        outputs: Mapping[str, Any],
        examples: Iterable[Example] = (),
    ) -> list[Msg]:
        """Returns the messages of a request and a reply with the given outputs, for example as training data."""
        shown = self.select_fields(signature)
        reply = self._create_turns(shown).write_reply(Example({}, outputs), self._find_mode(self.mode), "reply")
        return [*self.format(signature, inputs, examples=examples), reply]

    def select_fields(self, signature: _AnySignature) -> _AnySignature:
        """Returns the signature with only the fields that the prompt shows.

        An output for tool calls is removed, because templates cannot describe tool calls.

        Raises:
            OptionError: `signature` is not a signature class. Or the signature has an output for tool calls, and
                either has no input for tools, or `native_tools` is False.
        """
        shown = super().select_fields(signature)
        calls = [name for name, item in shown.output_fields.items() if is_tool_calls(item.type)]
        if calls:
            reason = f"the output {calls[0]!r} has tool calls, which templates cannot describe"
            raise OptionError("signature", reason, "Pass native_tools=True, or use ChatAdapter.")
        return shown

    def format_demos(self, signature: _AnySignature, examples: Iterable[Example]) -> list[Msg]:
        """Returns the messages of the examples: a user message and a reply for each example.

        An example may lack some outputs, or have only tool calls. An example with neither outputs nor tool calls
        is omitted. If the signature has inputs, an example without inputs is omitted too.
        """
        rows: list[tuple[bool, str, Example]] = []
        for index, example in enumerate(examples):
            check_option(f"examples[{index}]", example, Example)
            kind = example.classify(signature.input_fields, signature.output_fields)
            if kind != "unusable" or is_usable(signature, example):
                rows.append((kind == "complete", f"examples[{index}]", example))
        if self.order == "complete_last":
            rows.sort(key=lambda row: row[0])
        msgs: list[Msg] = []
        for number, (_, place, example) in enumerate(rows, 1):
            msgs += self._mark_example(signature, example, place, number)
        return msgs

    def _mark_example(self, signature: _AnySignature, example: Example, place: str, number: int) -> Iterator[Msg]:
        """Yields the messages of an example, with a mark that tells a budget to treat them as one unit."""
        for msg in self._create_turns(signature).format_example(example, example.mode, place, number):
            yield replace(msg, metadata={**(msg.metadata or {}), EXAMPLE_MARK: number - 1})

    def format_conversation_history(self, signature: _AnySignature, inputs: Mapping[str, Any]) -> list[Msg]:
        """Returns the messages of the earlier turns in an input of the type `History`."""
        return self._create_turns(signature).format_rows(inputs, self.mode)

    # -- texts -------------------------------------------------------------------------------------------------

    def format_prompt(
        self,
        kind: str,
        signature: _AnySignature,
        inputs: Mapping[str, Any] | Signature[Any],
        variables: Mapping[str, object] | None = None,
    ) -> str | tuple[Block, ...]:
        """Returns a prompt of any kind: a text, or blocks if the prompt has media.

        The kinds `repair` (with the variable `feedback`) and `more` have the default texts of Delphyne. These
        texts ask for another reply in the same conversation.

        Args:
            kind: Kind of the prompt.
            signature: Signature class.
            inputs: Values of the inputs, or a request that is bound to this signature.
            variables: Further variables of the template.

        Raises:
            TemplateNotFoundError: There is no file `{Name}.{kind}.jinja`, and no other text of this kind.
            TemplateError: The template is invalid or calls `fail`, or a variable is missing.
            OptionError: An argument is invalid.
        """
        check_option("kind", kind, str)
        shown = self.select_fields(signature)
        prompt = self._find_mode(self.mode).create_texts(shown, read_inputs(shown, inputs))
        return prompt.render(kind, variables)

    def format_feedback(
        self, feedback: Feedback, signature: _AnySignature, inputs: Mapping[str, Any] | Signature[Any]
    ) -> str | tuple[Block, ...]:
        """Returns the content of a user turn that asks for another reply.

        Raises:
            TemplateError: The template calls `fail`, as the default template does for feedback without a
                description.
        """
        return self.format_prompt("feedback", signature, inputs, {"feedback": feedback})

    def format_system_message(self, signature: _AnySignature) -> str:
        """Returns the text of the system message. The template gets no values of the inputs."""
        return str(self._find_mode(self.mode).create_texts(signature, {}).render("system"))

    def format_user_message_content(
        self,
        signature: _AnySignature,
        inputs: Mapping[str, Any],
        *,
        prefix: str = "",
        suffix: str = "",
        is_request: bool = False,
    ) -> Any:
        """Returns the content of a user message without the priming. `is_request` has no effect."""
        prompt = self._find_mode(self.mode).create_texts(signature, read_inputs(signature, inputs))
        contents = [msg.content for msg in prompt.render_user() if msg.role == "user"]
        segments: list[Segment] = [f"{prefix}\n\n"] if prefix else []
        for content in contents:
            blocks = [content] if isinstance(content, str) else content
            segments += [item.text if isinstance(item, TextBlock) else cast("Segment", item) for item in blocks]
        return join_segments([*segments, f"\n\n{suffix}"] if suffix else segments)

    def format_field_description(self, signature: _AnySignature) -> str:
        """Returns an empty string, because templates describe the fields."""
        return ""

    def format_field_structure(self, signature: _AnySignature) -> str:
        """Returns an empty string, because templates describe the format."""
        return ""

    def format_task_description(self, signature: _AnySignature) -> str:
        """Returns the instructions of the signature."""
        return signature.instructions

    def format_field_with_value(self, field: SignatureField, value: object) -> list[Segment]:
        """Returns the name and the value of one input. Templates do not use this method."""
        return [f"{field.name}: ", *write_content(field, value)]

    def user_message_output_requirements(self, signature: _AnySignature) -> str:
        """Returns an empty string, because templates describe the format."""
        return ""

    def format_assistant_message_content(
        self, signature: _AnySignature, outputs: Mapping[str, Any], missing: str | None = None
    ) -> str:
        """Returns the text of a reply from which the parser reads the given outputs.

        Missing outputs are omitted. The argument `missing` has no effect.
        """
        return self._find_mode(self.mode).bind_parser(signature).write(outputs)

    # -- requests and replies ----------------------------------------------------------------------------------

    def request_options(
        self, signature: _AnySignature, capabilities: Capabilities, tools: Sequence[ToolLike] = ()
    ) -> RequestOptions:
        """Returns the options that the parser needs: response format, tools and tool choice. See `Adapter`."""
        shown = self.select_fields(signature)
        if not shown.output_fields:
            return super().request_options(signature, capabilities, tools)
        parser = self._find_mode(self.mode).bind_parser(shown).parser
        further = [tool for tool in as_tools(tools) if tool not in parser.tools]
        options = super().request_options(signature, capabilities, [*parser.tools, *further])
        if parser.tool_choice is not None:
            options["tool_choice"] = parser.tool_choice
        if parser.response_format is not None:
            options["response_format"] = parser.response_format
        return options

    def parse(self, signature: _AnySignature, reply: Msg | str) -> dict[str, Any]:
        """Returns the outputs in a reply, by name. See `Adapter.parse`.

        A reply with tool calls needs no text. Outputs that the text of such a reply lacks are None. However, if
        the parser has tools (`tool_call` and `Parser.with_tools`) and no output is for tool calls, the parser
        reads the calls and may refuse them.

        If the parser returns a `ParseError` (see `Parser.or_error`) or a `ToolRequests` (see `Parser.with_tools`),
        this object is the value of each output.

        Raises:
            ParseError: The reply was cut off, refused or filtered, lacks an output, or the value of an output is
                invalid.
            OptionError: `reply` is neither a message nor a string, or the parser does not fit the outputs.
        """
        check_option("reply", reply, Msg | str, "Pass the reply of a model.")
        shown = self.select_fields(signature)
        msg = reply if isinstance(reply, Msg) else Msg("assistant", reply, "assistant")
        outputs: dict[str, Any] = {}
        if shown.output_fields:
            has_call_field = any(is_tool_calls(field.type) for field in signature.output_fields.values())
            reads_calls = not has_call_field and self._find_mode(self.mode).bind_parser(shown).parser.tools
            if msg.tool_uses and not reads_calls:
                outputs = self._parse_beside_calls(shown, msg)
            else:
                outputs = self._parse_reply(shown, reply)
        return self.merge_native_outputs(signature, shown, outputs, msg)

    def _parse_beside_calls(self, signature: _AnySignature, msg: Msg) -> dict[str, Any]:
        """Returns the outputs in the text of a reply with tool calls. Outputs that the text lacks are None."""
        is_complete = msg.finish_reason not in EARLY_ENDS
        outputs: dict[str, Any] = dict.fromkeys(signature.output_fields)
        if is_complete and not msg.text.strip():
            return outputs
        try:
            return self._parse_reply(signature, _remove_calls(msg))
        except ParseError as error:
            if is_complete:
                return {**outputs, **error.partial}
            raise

    def _parse_reply(self, signature: _AnySignature, reply: Msg | str) -> dict[str, Any]:
        outputs = self._find_mode(self.mode).bind_parser(signature).parse(reply)
        return self.fill_outputs(signature, outputs, get_reply_text(reply))

    def parse_text(self, signature: _AnySignature, text: str) -> dict[str, Any]:
        """Returns the outputs in the text of a reply.

        Raises:
            ParseError: The text lacks an output, or the value of an output is invalid.
        """
        return self._parse_reply(signature, text)


def _remove_calls(reply: Msg) -> Msg:
    """Returns a reply without its tool calls."""
    blocks = tuple(block for block in reply.blocks if not isinstance(block, ToolUseBlock))
    return build_part(reply, blocks, reply.role)
