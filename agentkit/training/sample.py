"""`Sample`: a conversation for training, with weights that select the messages to train."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias, cast

from agentkit.argument_checks import check_option, check_text
from agentkit.errors import MessageError, OptionError
from agentkit.formatting.formatter import check_messages
from agentkit.json_values import make_json_safe
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.validation import slot_setter
from agentkit.reprs import bounded_repr, shorten_repr
from agentkit.tools.tool import Tool, ToolLike, as_tools

__all__ = [
    "MessageWeight",
    "Sample",
    "Weight",
    "build_trusted_sample",
    "check_separate_results",
    "is_reply",
    "list_reply_indexes",
]

Weight: TypeAlias = int | None
"""Loss weight of a message or block: 1 (trained), 0 (not trained), or None (`train_on` of `tokenize` decides)."""

MessageWeight: TypeAlias = Weight | tuple[Weight, ...]
"""Weight of a message, or a tuple with one weight for each block of the message."""

_WEIGHT = "Pass 0, 1 or None, or a list with one of these for each block of the message."
_WEIGHTS = "Pass a list with one item for each message: 0, 1, None, or a list with one of these for each block."


@dataclass(frozen=True, slots=True)
class Sample:
    """Conversation for training.

    Attributes:
        msgs: The conversation, as the model reads it. A reply is a message with tool calls, or with the role
            `assistant` and no tool results.
        tools: Tools that the model may call.
        weights: One item for each message: a weight, or a list with one weight for each block of the message. The
            weight 1 means trained, and 0 means not trained. With None, the argument `train_on` of `tokenize`
            decides. None instead of the whole list means that no message has a weight.
        viewer: Name of the agent whose replies are trained. Replies of other agents are then trained only if their
            weight is 1 or `train_on` is `all`. None means that the replies of all agents are trained.
        tokens: Maps the message index of a reply to its recorded token ids. `tokenize` uses these ids instead of
            encoding the text of the reply.
        source: Text that describes the origin of the sample, such as the name of a log.
        rejected: For training on preferences: the whole conversation with the rejected reply, which the model
            should not write. Empty if there is no such conversation.
        extra: JSON object with the columns of a row for which `Sample` has no attribute, such as `label`. The
            variables in the column `chat_template_kwargs` are passed to the chat template. The variable `now` is
            the time that the template reads, as ISO 8601 text.

    Raises:
        MessageError: A message or tool is invalid.
        EmptyConversationError: There are no messages.
        OptionError: A weight, an index in `tokens` or another value is invalid.

    Example:
        >>> msgs = [Msg("Bob", "Hello.", "user"), Msg("Friday", "Hi.", "assistant")]
        >>> Sample(msgs, weights=[None, 1]).weights
        (None, 1)
    """

    msgs: Sequence[Msg]
    tools: Sequence[ToolLike] = ()
    weights: Sequence[Weight | Sequence[Weight]] | None = None
    viewer: str | None = None
    tokens: Mapping[int, Sequence[int]] | None = None
    source: str | None = None
    _: KW_ONLY
    rejected: Sequence[Msg] = ()
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        msgs = tuple(check_messages(self.msgs))
        check_text("viewer", self.viewer)
        check_text("source", self.source)
        check_option("extra", self.extra, Mapping, "Pass a JSON object.")
        rejected = tuple(check_messages(self.rejected)) if self.rejected else ()
        _set_msgs(self, msgs)
        _set_tools(self, as_tools(self.tools))
        _set_weights(self, _check_weights(msgs, self.weights))
        _set_tokens(self, _check_tokens(msgs, self.tokens))
        _set_rejected(self, rejected)
        _set_extra(self, make_json_safe(self.extra, "extra") if self.extra else {})

    @property
    def replies(self) -> tuple[int, ...]:
        """Indexes of the replies of the viewer, or of all agents if `viewer` is None."""
        replies, viewer = list_reply_indexes(self.msgs), self.viewer
        return replies if viewer is None else tuple(index for index in replies if self.msgs[index].name == viewer)

    @property
    def variables(self) -> dict[str, Any]:
        """Variables for the template, such as `enable_thinking`: the object `chat_template_kwargs` in `extra`.

        Empty if `extra` has no such object.
        """
        variables: object = self.extra.get("chat_template_kwargs")
        return dict(cast("dict[str, Any]", variables)) if isinstance(variables, dict) else {}

    def get_weight(self, index: int) -> MessageWeight:
        """Returns the weight of the message with this index, or the weights of its blocks."""
        return None if self.weights is None else cast("MessageWeight", self.weights[index])


def build_trusted_sample(
    msgs: tuple[Msg, ...],
    tools: tuple[Tool, ...],
    weights: Sequence[MessageWeight],
    extra: dict[str, Any],
    source: str | None = None,
) -> Sample:
    """Returns a sample without checking the values, which must be valid. This makes reading rows much faster."""
    sample = _new(Sample)
    _set_msgs(sample, msgs)
    _set_tools(sample, tools)
    _set_weights(sample, None if weights.count(None) == len(weights) else tuple(weights))
    _set_viewer(sample, None)
    _set_tokens(sample, None)
    _set_source(sample, source)
    _set_rejected(sample, ())
    _set_extra(sample, extra)
    return sample


_new = object.__new__
_set_msgs = slot_setter(Sample, "msgs")
_set_tools = slot_setter(Sample, "tools")
_set_weights = slot_setter(Sample, "weights")
_set_viewer = slot_setter(Sample, "viewer")
_set_tokens = slot_setter(Sample, "tokens")
_set_source = slot_setter(Sample, "source")
_set_rejected = slot_setter(Sample, "rejected")
_set_extra = slot_setter(Sample, "extra")


def is_reply(msg: Msg) -> bool:
    """Returns True if the message has tool calls, or has the role `assistant` and no tool results."""
    return bool(msg.features & Feature.ASSISTANT)


def list_reply_indexes(msgs: Sequence[Msg]) -> tuple[int, ...]:
    """Returns the indexes of the replies of all agents."""
    return tuple(index for index, msg in enumerate(msgs) if is_reply(msg))


def _check_weights(msgs: Sequence[Msg], weights: object) -> tuple[MessageWeight, ...] | None:
    if weights is None:
        return None
    check_option("weights", weights, Sequence, _WEIGHTS)
    items = list(cast("Iterable[object]", weights))
    if len(items) != len(msgs):
        reason = f"expected one weight for each of the {len(msgs)} messages, got {len(items)}"
        raise OptionError("weights", reason, _WEIGHTS)
    checked = tuple(
        _check_weight(f"weights[{index}]", item, msg)
        for index, (item, msg) in enumerate(zip(items, msgs, strict=True))
    )
    return None if all(item is None for item in checked) else checked


def _check_weight(place: str, weight: object, msg: Msg) -> MessageWeight:
    if not isinstance(weight, list | tuple):
        return _check_number(place, weight)
    items = cast("Sequence[object]", weight)
    if len(items) != len(msg.blocks):
        reason = f"expected one weight for each of the {len(msg.blocks)} blocks, got {len(items)}"
        raise OptionError(place, reason, _WEIGHT)
    checked = tuple(_check_number(f"{place}[{index}]", item) for index, item in enumerate(items))
    if len({*checked}) > 1:
        return checked
    return checked[0] if checked else None


def _check_number(place: str, weight: object) -> Weight:
    if weight is None:
        return None
    if not isinstance(weight, int | float) or weight not in (0, 1):
        raise OptionError(place, f"expected 0, 1 or None, got {shorten_repr(weight, 60)}", _WEIGHT)
    return int(weight)


def _check_tokens(msgs: Sequence[Msg], tokens: object) -> dict[int, tuple[int, ...]] | None:
    if not tokens:
        return None
    check_option("tokens", tokens, Mapping, "Pass a dict that maps indexes of replies in `msgs` to token ids.")
    checked: dict[int, tuple[int, ...]] = {}
    for index, ids in cast("Mapping[object, Iterable[object]]", tokens).items():
        place = f"tokens[{shorten_repr(index, 60)}]"
        if not isinstance(index, int) or not 0 <= index < len(msgs) or not is_reply(msgs[index]):
            raise OptionError(place, "`msgs` has no reply with this index", "Pass the index of a reply.")
        check_option(place, ids, list | tuple, "Pass a list of token ids.")
        numbers = tuple(ids)
        if not numbers:
            raise OptionError(
                place,
                "the list of token ids is empty",
                "Remove this entry. The text of the reply is then encoded.",
            )
        if not all(isinstance(number, int) and number >= 0 for number in numbers):
            raise OptionError(
                place, f"expected token ids, got {shorten_repr(ids, 60)}", "Pass integers of at least 0."
            )
        checked[index] = cast("tuple[int, ...]", numbers)
    return checked


def check_separate_results(sample: Sample) -> None:
    """Checks that no message contains both tool results and other content.

    Raises:
        MessageError: A message contains a tool result and other content.
    """
    for index, msg in enumerate(sample.msgs):
        if msg.features & Feature.RESULT and len(msg.tool_results) < len(msg.blocks):
            reason = "the message has a tool result and other content"
            raise MessageError(f"msgs[{index}]", reason, "Pass the tool result as a separate message.")
