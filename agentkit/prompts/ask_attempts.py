"""`ask`: sends a typed prompt to a model and returns the validated value of the reply.

After a reply that cannot be parsed, `ask` makes one of two further model calls, if possible:

- If the reply is not in the format of the adapter, and the adapter has a fallback adapter, the fallback adapter
  writes new messages. Tool calls that were run, and their results, follow the new messages. A fallback adapter is
  used only once.
- Otherwise, if `retries` allows a retry, the reply and a `Feedback` with the error are appended to the messages.
  If the reply has tool calls, the `Feedback` is the result of each call. The earlier messages stay unchanged, so
  that the provider's prompt cache can reuse them.

If neither model call is possible, `ask` raises a `NoAnswerError`.

A reply with tool calls is a result, even if it has no text.

If a reply was cut off, refused or filtered, `ask` raises an error without a further model call. The same request
would probably fail again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from agentkit.argument_checks import check_int
from agentkit.errors import NoAnswerError, ParseError
from agentkit.messages.blocks import Block, ToolResultBlock
from agentkit.messages.message import Msg
from agentkit.prompts.adapter import Adapter, HistoryItem
from agentkit.prompts.examples import Example
from agentkit.prompts.feedback import Feedback
from agentkit.prompts.prediction import Attempt, Prediction
from agentkit.prompts.prompt_call import PromptCall
from agentkit.prompts.signature import Signature
from agentkit.tools.tool import ToolLike, as_tools

if TYPE_CHECKING:
    from agentkit.models.chat_model import ChatModel

__all__ = ["ask"]

T = TypeVar("T")

_FINAL: Final = ("cut_off", "refused", "filtered")
"""Failures after which another model call with the same request is useless."""


async def ask(
    model: ChatModel,
    request: Signature[T],
    *,
    adapter: Adapter | None = None,
    examples: Iterable[Example] = (),
    history: Iterable[HistoryItem] = (),
    tools: Sequence[ToolLike] = (),
    run_tools: int = 0,
    mode: str | None = None,
    retries: int = 0,
    max_tokens: int | None = None,
    **parameters: Any,
) -> Prediction[T]:
    r"""Sends a typed prompt to a model. Returns a `Prediction` with the validated value of the reply.

    Args:
        model: Model to call.
        request: Bound request: a signature that was called with values.
        adapter: Adapter that writes the messages. The default is `ChatAdapter(fallback=JSONAdapter())`.
        examples: Examples of the task.
        history: Messages, earlier turns and feedback that precede the request.
        tools: Tools that the model may call.
        run_tools: Maximum number of rounds in which `ask` runs tool calls. With 0, no tool calls are run, and the
            result contains them. If the text of a reply with tool calls lacks an output, this output is None. If a
            reply calls a tool without a function, no tool call of this reply is run, and there is no further
            round.
        mode: Name of a mode of a `PromptAdapter`. None means the mode in the adapter's option `mode`.
        retries: Maximum number of further model calls after replies that cannot be parsed. The first call with a
            fallback adapter and the calls after tool results do not count.
        max_tokens: Maximum number of tokens of the reply. None means the `max_tokens` of the model.
        **parameters: Parameters under the provider's own names, such as `temperature=0`.

    Raises:
        NoAnswerError: No reply has a valid value. The attribute `attempts` has all messages, replies and errors.
        ModelError: A model call fails.
        InputError: An argument is invalid.

    Example:
        >>> import asyncio
        >>> from agentkit.prompts import OutputField, InputField, Signature, ask
        >>> from agentkit.testing import ScriptedModel
        >>> class Sum(Signature):
        ...     "Add the numbers."
        ...     numbers: list[int] = InputField()
        ...     total: int = OutputField(ge=0)
        >>> model = ScriptedModel(["[[ ## total ## ]]\n3"])
        >>> asyncio.run(ask(model, Sum(numbers=[1, 2]))).value.total
        3
    """
    check_int("run_tools", run_tools, 0)
    check_int("retries", retries, 0)
    options = {"max_tokens": max_tokens, "parameters": parameters or None}
    call = PromptCall.create(model, request, adapter, mode, examples, history, tools, **options)
    return cast("Prediction[T]", await _AskRun(call, run_tools).run(retries))


@dataclass
class _AskRun:
    """State of one call of `ask`."""

    call: PromptCall
    rounds: int
    exchanges: list[Msg] = field(default_factory=list[Msg])  # tool calls that were run, and their results
    attempts: list[Attempt] = field(default_factory=list[Attempt])

    async def run(self, retries: int) -> Prediction[Any]:
        msgs = self.call.format()
        while True:
            msgs, reply = await self._generate(msgs)
            try:
                outputs = await self.call.parse(reply)
            except ParseError as error:
                self.attempts.append(Attempt(tuple(msgs), reply, error))
                if error.failure in _FINAL:
                    raise NoAnswerError(self.attempts, error) from error
                fallback = self.call.create_fallback() if error.failure == "no_structure" else None
                if fallback is not None:
                    self.call, prompt = fallback
                    msgs = [*prompt, *self.exchanges]
                elif retries:
                    retries -= 1
                    feedback = self.call.adapter.format_feedback(
                        Feedback.from_error(error), self.call.signature, self.call.request
                    )
                    msgs = [*msgs, reply, _write_feedback(reply, feedback)]
                else:
                    raise NoAnswerError(self.attempts, error) from error
                continue
            self.attempts.append(Attempt(tuple(msgs), reply))
            return self.call.create_prediction(outputs, msgs, reply, self.attempts)

    async def _generate(self, msgs: list[Msg]) -> tuple[list[Msg], Msg]:
        """Calls the model, and runs the tool calls of its replies for at most `rounds` rounds.

        If a reply calls a tool without a function, no tool call of this reply is run. Such tool calls are for the
        parser or the application.
        """
        model, options = self.call.model, self.call.call_options()
        tools = as_tools(options.get("tools", ()))
        without_function = {tool.name for tool in tools if tool.function is None}
        reply = await model.generate(msgs, **options)
        while (
            reply.tool_uses and self.rounds and without_function.isdisjoint(call.name for call in reply.tool_uses)
        ):
            from agentkit.tools.concurrent_calls import run_tool_calls

            self.rounds -= 1
            results = await run_tool_calls(reply.tool_uses, tools)
            exchange = [reply, Msg("tools", results, "user")]
            self.exchanges += exchange
            msgs = [*msgs, *exchange]
            reply = await model.generate(msgs, **options)
        return msgs, reply


def _write_feedback(reply: Msg, feedback: str | tuple[Block, ...]) -> Msg:
    """Returns the message with the feedback on a reply.

    If the reply has tool calls, the feedback is the result of each tool call.
    """
    if not reply.tool_uses:
        return Msg("user", feedback, "user")
    output = cast("Any", feedback)  # only text and media blocks, which a tool result may contain
    results = [ToolResultBlock(call.id, call.name, output, is_error=True) for call in reply.tool_uses]
    return Msg("tools", results, "user")
