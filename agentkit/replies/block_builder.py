"""`BlockBuilder`: converts the partial blocks of a reply to message blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

from pydantic_core import to_json

from agentkit.capabilities.prefix_digest import prefix_digest
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.errors import MessageError
from agentkit.json_values import make_json_safe, parse_arguments
from agentkit.messages.blocks import (
    Block,
    OpaqueBlock,
    OpaqueState,
    ToolUseBlock,
    build_parsed_call,
    build_trusted_text,
    build_trusted_thinking,
)
from agentkit.messages.validation import same_json
from agentkit.replies.arguments import split_objects
from agentkit.replies.missing_call_ids import MissingCallIds
from agentkit.replies.partial_blocks import (
    CompleteBlock,
    PartialBlock,
    PartialText,
    PartialThinking,
    PartialToolCall,
)

__all__ = ["BlockBuilder"]

_PROOFS = ("signature", "redacted_data", "encrypted_content")
"""Fields of `OpaqueState` with which a provider verifies that its own model wrote a thinking block."""


@dataclass
class BlockBuilder:
    """Builder of the message blocks of one reply.

    Attributes:
        issuer: System that signs or encrypts opaque state in the reply.
        request: Request that the reply answers. None if unknown.
        raw_arguments: True to store the argument text of tool calls as `raw_input`.
        layout: Names of the keys in the request.
        binds_thinking: True to store a digest of the request in each signed thinking block.
        model: Name of the model that wrote the reply. None until the name arrives.
        id: Id of the reply. None until the id arrives.
        created: Creation time of the reply, in the provider's format. Empty until the time arrives.
    """

    issuer: str
    request: Mapping[str, Any] | None
    raw_arguments: bool
    layout: WireLayout
    binds_thinking: bool
    model: str | None = None
    id: str | None = None
    created: str = ""
    _missing_call_ids: MissingCallIds = field(default_factory=MissingCallIds, init=False)

    def build(self, partial: PartialBlock) -> list[Block]:
        """Converts a partial block to message blocks.

        Returns an empty list if the partial block is empty. Returns several tool calls if one argument text
        contains the arguments of several calls.
        """
        if isinstance(partial, PartialText):
            text = partial.text
            return [self._text(partial, text)] if text or partial.state else []
        if isinstance(partial, PartialToolCall):
            partial.blocks = partial.blocks or self.build_calls(partial, complete=False)
            return [*partial.blocks]
        return [self._complete(partial)] if isinstance(partial, CompleteBlock) else []

    def build_calls(self, partial: PartialToolCall, *, complete: bool) -> list[ToolUseBlock]:
        """Converts a partial tool call to tool call blocks.

        The result has one block, or several blocks if the server concatenated the arguments of several tool calls.
        An empty argument text means a call without arguments if `complete` is True, and an incomplete call
        otherwise.
        """
        if partial.input is not None:
            return [self._call(partial, 0, partial.input, None)]
        text = partial.arguments.text
        if self.raw_arguments and partial.id and not (partial.state or partial.metadata):
            block = build_parsed_call(partial.id, partial.name, text)
            if block is not None:
                return [block]
        arguments = parse_arguments(text) if text.strip() else {}
        if arguments is not None and (complete or text.strip()):
            return [self._call(partial, 0, arguments, text if text and self.raw_arguments else None)]
        if calls := _separate_calls(split_objects(text)):
            return [
                self._call(partial, index, value, raw if self.raw_arguments else None)
                for index, (value, raw) in enumerate(calls)
            ]
        partial.metadata = {**partial.metadata, "incomplete": True}
        return [self._call(partial, 0, {}, text)]

    def _call(
        self, partial: PartialToolCall, index: int, arguments: dict[str, Any], raw: str | None
    ) -> ToolUseBlock:
        """Returns one of the tool calls that an argument text contains.

        `index` numbers these tool calls from 0. Only call 0 gets the provider's id and opaque state.
        """
        id = partial.id if not index else ""
        if not id:
            # The id also depends on the request and the reply, so that equal calls in two replies get different
            # ids.
            text = raw or to_json(arguments).decode()
            id = self._missing_call_ids.create(self._prefix, self.id, self.created, partial.name, text)
        state = self._state(partial.state) if partial.state and not index else None
        metadata = dict(partial.metadata) or None
        try:
            return ToolUseBlock(id, partial.name, arguments, raw, state, metadata=metadata)
        except MessageError:  # the arguments contain NaN, or are nested too deeply
            return ToolUseBlock(id, partial.name, make_json_safe(arguments), raw, state, metadata=metadata)

    def _text(self, partial: PartialText, text: str) -> Block:
        block: Block
        if isinstance(partial, PartialThinking):
            block = build_trusted_thinking(text, self._thinking_state(partial.state))
        else:
            block = build_trusted_text(text, self._state(partial.state) if partial.state else None)
        return replace(block, metadata=dict(partial.metadata)) if partial.metadata else block

    def _complete(self, partial: CompleteBlock) -> Block:
        """Returns a copy of the block with the opaque state and the metadata that arrived after the block."""
        block = partial.block
        if partial.state and not isinstance(block, OpaqueBlock):
            block = replace(block, state=self._state(partial.state))
        return replace(block, metadata=dict(partial.metadata)) if partial.metadata else block

    def _thinking_state(self, fields: Mapping[str, Any]) -> OpaqueState:
        if not fields:
            return _create_empty_state(self.issuer, self.model)
        has_proof = self.binds_thinking and any(fields.get(name) for name in _PROOFS)
        return self._state(fields, self._prefix if has_proof else None)

    def _state(self, fields: Mapping[str, Any], prefix: str | None = None) -> OpaqueState:
        return OpaqueState(self.issuer, model=self.model, prefix=prefix, **fields)

    @cached_property
    def _prefix(self) -> str | None:
        if self.request is None:
            return None
        try:
            return prefix_digest(self.request, self.layout)
        except (TypeError, AttributeError):  # the request contains SDK objects
            return prefix_digest(make_json_safe(self.request), self.layout)


@lru_cache(64)
def _create_empty_state(issuer: str, model: str | None) -> OpaqueState:
    return OpaqueState(issuer, model=model)


def _separate_calls(objects: list[tuple[dict[str, Any], str]]) -> list[tuple[dict[str, Any], str]]:
    """Returns the JSON objects that are the arguments of separate tool calls, each object with its JSON text.

    Skips empty objects, because some servers send `{}` before the arguments. If all objects are empty, returns the
    first object. Also skips an object that equals the previous object, because some servers send the arguments of
    a call twice.
    """
    calls = [pair for pair in objects if pair[0]] or objects[:1]
    return [pair for index, pair in enumerate(calls) if not index or not same_json(pair[0], calls[index - 1][0])]
