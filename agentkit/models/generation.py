"""`generate`, which returns the complete reply of a model call."""

from __future__ import annotations

from agentkit.errors import ContextLengthError, NetworkError
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.models.call import ModelCall
from agentkit.models.failures import is_stream_only
from agentkit.models.stream import ModelStream

__all__ = ["generate"]


async def generate(call: ModelCall) -> Msg:
    """Returns the complete reply of a model call.

    If the provider refuses the prompt as too long, sends a shorter prompt once, unless `call.retry` is None. If
    the model accepts only requests for a stream, requests a stream and reads it to its end.

    Raises:
        ModelError: If the call fails.

    """
    try:
        return await _generate_once(call)
    except ContextLengthError as error:
        if not await call.replan(error):
            raise
    return await _generate_once(call)


async def _generate_once(call: ModelCall) -> Msg:
    outgoing = call.build_request(stream=False)
    if call.model in call.endpoint.stream_only_models or call.endpoint.requires_stream(outgoing):
        return await _read_stream(call)
    try:
        return await call.send(outgoing)
    except Exception as error:
        raised = call.as_agentkit_error(error)
        requires_stream = is_stream_only(raised, call.provider.error_patterns)
        if not requires_stream and (raised is None or raised is error):
            raise
    if not requires_stream:
        assert raised is not None
        # An error that is raised inside the `except` block has the SDK's error as its `__context__`. The SDK's
        # error may contain an API key, so the error is raised here.
        raise raised
    call.endpoint.stream_only_models.add(call.model)
    return await _read_stream(call)


async def _read_stream(call: ModelCall) -> Msg:
    """Requests a stream and returns the complete message. Raises NetworkError if the stream breaks off."""

    async def get_call() -> ModelCall:
        return call

    async with ModelStream(get_call) as stream:
        reply = await stream.finish()
    if reply.finish_reason is FinishReason.INTERRUPTED:
        reason = "the stream ended before the reply was complete"
        raise NetworkError(call.provider.name, reason, request_id=stream.request_id)
    return reply
