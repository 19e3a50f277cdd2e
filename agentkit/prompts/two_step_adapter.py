"""`TwoStepAdapter`: a model answers in free text, and another model extracts the outputs, as in DSPy 3.4.1."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal, NoReturn, TypeAlias, cast

from pydantic import BaseModel

from agentkit.argument_checks import check_option
from agentkit.errors import OptionError, ParseError
from agentkit.messages.message import Msg
from agentkit.models.chat_model import ChatModel
from agentkit.prompts.adapter import Adapter
from agentkit.prompts.adapter_events import Observer
from agentkit.prompts.chat_adapter import ChatAdapter
from agentkit.prompts.field_content import Segment, write_content
from agentkit.prompts.field_texts import field_list
from agentkit.prompts.fields import InputField, SignatureField
from agentkit.prompts.native_outputs import read_native_outputs
from agentkit.prompts.reply_texts import check_reply_end, get_reply_text
from agentkit.prompts.signature import Signature

__all__ = ["TwoStepAdapter"]

_AnySignature: TypeAlias = type[Signature[Any]]


@dataclass(frozen=True, init=False)
class TwoStepAdapter(Adapter):
    """Adapter for models that reason well, but do not follow a format well.

    The first model receives a prompt without a format, and replies in free text. A second model then extracts the
    outputs from this text. `ChatAdapter` writes the prompt for the second model. `ask` makes both model calls.

    Attributes:
        model: Model that extracts the outputs.

    Raises:
        OptionError: An option is invalid.
        MissingExtraError: The package json-repair of the extra `prompts` is not installed.
    """

    model: ChatModel = field(kw_only=True)  # keyword-only, because earlier attributes have defaults

    def __init__(
        self,
        model: ChatModel,
        *,
        native_tools: bool = False,
        fallback: Adapter | None = None,
        order: Literal["complete_last", "given"] = "complete_last",
        native_reasoning: bool = False,
        native_citations: bool = False,
        observe: Observer | None = None,
    ) -> None:
        """Stores the model for the second model call. See `Adapter` for the other options."""
        for name, value in (
            ("model", model),
            ("native_tools", native_tools),
            ("fallback", fallback),
            ("order", order),
            ("native_reasoning", native_reasoning),
            ("native_citations", native_citations),
            ("observe", observe),
        ):
            object.__setattr__(self, name, value)
        check_option("model", model, ChatModel)
        self.__post_init__()
        ChatAdapter()  # raises MissingExtraError if json-repair is not installed

    # -- first call --------------------------------------------------------------------------------------------

    def format_field_description(self, signature: _AnySignature) -> str:
        """Returns a sentence about the role of the model, and the lists of the inputs and outputs."""
        inputs, outputs = field_list(signature.input_fields), field_list(signature.output_fields)
        return (
            "You are a helpful assistant that can solve tasks based on user input.\n"
            f"As input, you will be provided with:\n{inputs}\n"
            f"Your outputs must contain:\n{outputs}"
        )

    def format_field_structure(self, signature: _AnySignature) -> str:
        """Returns the sentence that asks the model to write the outputs in detail."""
        return "You should lay out your outputs in detail so that your answer can be understood by another agent"

    def format_task_description(self, signature: _AnySignature) -> str:
        """Returns the instructions of the signature, after the words `Specific instructions:`."""
        return f"Specific instructions: {signature.instructions}"

    def format_field_with_value(self, field: SignatureField, value: object) -> list[Segment]:
        """Returns the name of a field, and the value as `str(value)`.

        Values whose `str()` is incomplete or varies are written as in `ChatAdapter`. Examples are media, tools and
        sets.

        Raises:
            OptionError: The value refers to itself, is nested too deeply, or contains an integer with too many
                digits.
        """
        try:
            text = str(value) if _is_plain(value) else None
        except (RecursionError, ValueError):
            text = None  # if `str` fails, write_content raises an OptionError
        return [f"{field.name}: ", *(write_content(field, value) if text is None else [text])]

    def user_message_output_requirements(self, signature: _AnySignature) -> str:
        """Returns an empty string, because the reply has no format."""
        return ""

    def format_assistant_message_content(
        self, signature: _AnySignature, outputs: Mapping[str, Any], missing: str | None = None
    ) -> str:
        """Returns the text of a reply: the name and the value of each output in `outputs`.

        The argument `missing` has no effect.
        """
        sections = [
            self.format_field_with_value(item, outputs[name])
            for name, item in signature.output_fields.items()
            if name in outputs
        ]
        return "\n\n".join(
            "".join(item for item in section if isinstance(item, str)) for section in sections
        ).strip()

    # -- second call -------------------------------------------------------------------------------------------

    async def extract(self, signature: _AnySignature, reply: Msg | str) -> dict[str, Any]:
        """Asks the second model for the outputs in a reply of the first model.

        With `native_tools`, the tool calls of the reply are the value of the output for tool calls. A reply that
        has tool calls but no text needs no second model call. All other outputs of such a reply are None.

        Raises:
            ParseError: The reply has no text, the second model found no valid outputs, or one of the replies ended
                early. The attributes `message` and `text` contain the reply of the first model.
            ModelError: The second model call fails.
            OptionError: `reply` is neither a message nor a string.
        """
        check_option("reply", reply, Msg | str, "Pass the reply of a model.")
        check_reply_end(reply)
        msg = reply if isinstance(reply, Msg) else Msg("assistant", reply, "assistant")
        shown = self.select_fields(signature)
        if not shown.output_fields or (msg.tool_uses and not msg.text.strip()):
            native = read_native_outputs(shown.output_fields.values(), msg)
            outputs: dict[str, Any] = {**dict.fromkeys(shown.output_fields), **native}
        else:
            outputs = await self._extract_outputs(shown, msg)
        return self.merge_native_outputs(signature, shown, outputs, msg)

    async def _extract_outputs(self, signature: _AnySignature, msg: Msg) -> dict[str, Any]:
        if not msg.text.strip():
            raise ParseError("the reply has no text", failure="no_structure", message=msg)
        extraction, adapter = _create_extraction(signature), ChatAdapter()
        name = next(iter(extraction.input_fields))
        extracted = await self.model.generate(adapter.format(extraction, {name: get_reply_text(msg)}))
        try:
            return adapter.parse(extraction, extracted)
        except ParseError as error:
            raise ParseError(
                f"the outputs could not be extracted from the reply ({error.description.rstrip('.')})",
                failure=error.failure,
                place=error.place,
                text=get_reply_text(msg),
                partial=error.partial,
                message=msg,
            ) from error

    def parse(self, signature: _AnySignature, reply: Msg | str) -> NoReturn:
        """Raises `OptionError`, because reading the reply needs a call of the second model. Use `extract`."""
        reason = "cannot read a reply without a model call"
        raise OptionError(
            "TwoStepAdapter.parse", reason, "Use `await adapter.extract(signature, reply)`, or `ask`."
        )

    def parse_text(self, signature: _AnySignature, text: str) -> NoReturn:
        """Raises `OptionError` (see `parse`)."""
        self.parse(signature, text)


def _create_extraction(signature: _AnySignature) -> _AnySignature:
    """Returns the signature for the second model call: a text as the input, and the outputs of `signature`."""
    names = ", ".join(f"`{name}`" for name in signature.output_fields)
    for name in signature.input_fields:
        signature = signature.delete(name)
    text = "text"
    while text in signature.output_fields:
        text += "_"
    extraction: _AnySignature = signature.prepend(text, InputField(), str)
    return extraction.with_instructions(_INSTRUCTIONS.format(names=names))


_INSTRUCTIONS: Final = (
    "The input is a text that should contain all the necessary information to produce the fields {names}. "
    "            Your job is to extract the fields from the text verbatim. "
    "Extract precisely the appropriate value (content) for each field."
)
"""Instructions of the second model call, with the same spaces as in DSPy 3.4.1."""


def _is_plain(value: object) -> bool:
    """Returns True if the `str()` of a value is the same in any process, and shows all its contents."""
    if isinstance(value, BaseModel):
        items: Iterable[object] = vars(value).values()
    elif isinstance(value, Mapping):
        items = [item for pair in cast("Mapping[object, object]", value).items() for item in pair]
    elif isinstance(value, list | tuple):
        items = cast("Iterable[object]", value)
    else:
        return value is None or isinstance(value, _PLAIN)
    return all(map(_is_plain, items))


_PLAIN: Final = (str, int, float, Decimal, Enum, date, time, timedelta)
