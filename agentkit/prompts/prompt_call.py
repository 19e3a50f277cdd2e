"""`PromptCall`: a typed prompt for one model, with the options that `ask` and `stream` have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agentkit.argument_checks import check_option
from agentkit.errors import OptionError, ParseError
from agentkit.messages.message import Msg
from agentkit.prompts.adapter import Adapter, HistoryItem
from agentkit.prompts.bound_request import get_inputs
from agentkit.prompts.chat_adapter import ChatAdapter
from agentkit.prompts.examples import Example
from agentkit.prompts.native_outputs import find_tools
from agentkit.prompts.prediction import Attempt, Outputs, Prediction
from agentkit.prompts.prefix_inputs import get_prefix
from agentkit.prompts.signature import Signature
from agentkit.reprs import shorten_repr
from agentkit.tools.tool import ToolLike

if TYPE_CHECKING:
    from agentkit.models.chat_model import ChatModel

__all__ = ["PromptCall"]

_AnySignature: TypeAlias = type[Signature[Any]]
_Extract: TypeAlias = Callable[[_AnySignature, Msg], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class PromptCall:
    """Typed prompt for one model, with the options of the model call.

    Attributes:
        model: Model to call.
        request: Bound request.
        adapter: Adapter that writes the messages.
        examples: Examples of the task.
        history: Messages, earlier turns and feedback that precede the request.
        tools: Tools that the model may call, in addition to the tools in the inputs.
        options: Options of the model call: `max_tokens` and `parameters`.
    """

    model: ChatModel
    request: Signature[Any]
    adapter: Adapter
    examples: Sequence[Example]
    history: Sequence[HistoryItem]
    tools: Sequence[ToolLike]
    options: Mapping[str, Any]

    @classmethod
    def create(
        cls,
        model: ChatModel,
        request: Signature[Any],
        adapter: Adapter | None,
        mode: str | None,
        examples: Iterable[Example],
        history: Iterable[HistoryItem],
        tools: Iterable[ToolLike],
        **options: Any,
    ) -> PromptCall:
        """Checks the arguments of `ask` or `stream`, and creates a `PromptCall`.

        If `adapter` is None, the adapter is a `ChatAdapter` with a `JSONAdapter` as its fallback.

        Raises:
            OptionError: An argument is invalid.
        """
        from agentkit.models.chat_model import ChatModel

        check_option("model", model, ChatModel)
        if not isinstance(cast("object", request), Signature):
            reason = f"expected a signature with values, got {shorten_repr(request, 60)}"
            raise OptionError("request", reason, "Call the signature with values, such as Judge(answer='…').")
        check_option("adapter", adapter, Adapter | None)
        if adapter is None:
            from agentkit.prompts.json_adapter import JSONAdapter

            adapter = ChatAdapter(fallback=JSONAdapter())
        return cls(model, request, adapter.select_mode(mode), [*examples], [*history], [*tools], options)

    @property
    def signature(self) -> _AnySignature:
        """Signature class of the request."""
        return type(self.request)

    def format(self) -> list[Msg]:
        """Returns the messages of the request.

        If the model has a viewer, the replies in examples and earlier turns get the name of the viewer. With any
        other name, the request would present these replies as lines of another speaker.
        """
        msgs = self.adapter.format(
            self.signature, self.request, examples=self.examples, history=self.history, tools=self.tools
        )
        viewer = self.model.viewer
        if viewer is None:
            return msgs
        given = self._list_given_ids()
        # Adapters name their replies "assistant". Messages of the application with this name keep the name.
        # The prefix of an example is an exception, because its messages are copies, which are not in `given`.
        return [
            replace(msg, name=viewer) if msg.name == msg.role == "assistant" and id(msg) not in given else msg
            for msg in msgs
        ]

    def _list_given_ids(self) -> set[int]:
        """Returns the `id()` of each item that the application passed as history or in the input `prefix`."""
        return {id(item) for item in (*self.history, *get_prefix(self.signature, get_inputs(self.request)))}

    def create_fallback(self) -> tuple[PromptCall, list[Msg]] | None:
        """Returns a `PromptCall` with the fallback adapter, and the messages that this adapter writes.

        Returns None if there is no fallback adapter, or if this adapter does not accept the request.
        """
        if self.adapter.fallback is None:
            return None
        call = replace(self, adapter=self.adapter.fallback)
        try:
            call.call_options()
            return call, call.format()
        except OptionError:
            return None

    def list_tools(self) -> list[ToolLike]:
        """Returns the tools of the model call. With native tools, the tools in the inputs are included."""
        inputs = get_inputs(self.request) if self.adapter.native_tools else {}
        return [*self.tools, *find_tools(self.signature, inputs)]

    def call_options(self) -> dict[str, Any]:
        """Returns the options of the model call."""
        capabilities = self.model.formatter.capabilities(self.model.model)
        options = self.adapter.request_options(self.signature, capabilities, self.list_tools())
        return {**options, **self.options}

    async def parse(self, reply: Msg) -> dict[str, Any]:
        """Returns the outputs in a reply, by name.

        Calls the method `extract` of the adapter. If the adapter has no such method, calls `parse`.

        Raises:
            ParseError: The reply lacks an output, or a value is invalid.
            ModelError: The adapter reads replies with a model, and the model call fails.
        """
        extract: _Extract | None = getattr(self.adapter, "extract", None)
        if extract is None:
            return self.adapter.parse(self.signature, reply)
        return await extract(self.signature, reply)

    def create_prediction(
        self, outputs: Mapping[str, Any], msgs: Sequence[Msg], reply: Msg, attempts: Sequence[Attempt]
    ) -> Prediction[Any]:
        """Returns the prediction with the outputs of a reply.

        A budget may drop the messages of the prediction, except messages that the application pinned.
        """
        given = self._list_given_ids()
        msgs = [replace(msg, pinned=False) if msg.pinned and id(msg) not in given else msg for msg in msgs]
        return Prediction(
            outputs["answer"] if self.signature.is_query else Outputs(outputs),
            reply,
            (*msgs, reply),
            tuple(attempts),
            reply.tool_uses,
            next((value for value in outputs.values() if isinstance(value, ParseError)), None),
        )
