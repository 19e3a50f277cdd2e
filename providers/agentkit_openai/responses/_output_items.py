"""The items of a Responses output as blocks: pieces of them, and the finished ones, which are the truth."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias, cast

from agentkit.provider_kit import (
    Base64Source,
    ImageBlock,
    MessageError,
    OpaqueBlock,
    ReplyBuilder,
    as_list,
    as_object,
    as_text,
    make_json_safe,
)
from agentkit_openai._custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai._refusals import REFUSAL_PART
from agentkit_openai.responses._item_index import Place
from agentkit_openai.responses._reasoning import reasoning_state, reasoning_text
from agentkit_openai.responses._turn_items import CALL_FIELDS, IMAGE_CALL
from agentkit_openai.responses.capabilities import RESPONSES

__all__ = ["CALL", "OutputItems", "SAID", "THINKING", "image_state", "picture_of"]

Key: TypeAlias = tuple[int, ...]

_WIRE = str(RESPONSES.wire)
_CALLS = frozenset({"function_call", "custom_tool_call"})
_SHOWN = _CALLS | {"message", "reasoning"}  # items whose pieces are blocks

THINKING, SAID, CALL, _WHOLE = range(4)
"""The kinds of blocks that an item may turn out to be: two of them only where a stream is at odds with itself."""


class OutputItems:
    """The items of one reply on their way into its assembly."""

    def __init__(self, reply: ReplyBuilder) -> None:
        self.reply = reply
        self.refused = False
        self._phases: dict[Place, str] = {}
        self._texts: dict[Place, list[Key]] = {}  # of messages, by their places
        self._refusals: set[Key] = set()
        self._citations: dict[Key, list[Any]] = {}
        self._asked: dict[str, tuple[Key, dict[str, Any]]] = {}  # calls by their ids
        self._open: dict[Place, dict[str, Any]] = {}  # items that have begun
        self._ids: dict[Place, str] = {}
        self._thoughts: dict[Place, dict[str, Any]] = {}  # reasoning items: those after them go with their ids

    def begin(self, place: Place, item: dict[str, Any]) -> None:
        """An item that is announced: its content comes later."""
        kind = item.get("type")
        self._open[place] = item
        self.identify(place, item)
        if kind == "message":
            self._phases[place] = as_text(item.get("phase"))
        elif str(kind) in _CALLS:
            key = (*place, CALL, 0)
            self.reply.add_tool_call(key, item.get("call_id"), item.get("name"))
            self._sign_call(key, item, CUSTOM_CALL if kind == "custom_tool_call" else None)

    def identify(self, place: Place, item: dict[str, Any]) -> None:
        """The id of an item: the last one that is told counts."""
        if item.get("type") == "reasoning":
            self._thoughts[place] = item
        if id := as_text(item.get("id")):
            self._ids[place] = id

    def finish(self, place: Place, item: dict[str, Any]) -> None:
        """A finished item (SDK: ResponseOutputItem): the truth over the pieces that came of it."""
        kind = item.get("type")
        self._open.pop(place, None)
        self.identify(place, item)
        if kind == "message":
            self._message(place, item)
        elif kind == "reasoning":
            self._reasoning((*place, THINKING, 0), item)
        elif kind == "function_call":
            self._call((*place, CALL, 0), item)
        elif kind == "custom_tool_call":
            self._custom_call((*place, CALL, 0), item)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self._answer(place, item)
        elif picture := picture_of(item):
            self.reply.add_block((*place, _WHOLE, 0), picture)
            self.reply.add_state((*place, _WHOLE, 0), **image_state(item))
        elif kind and isinstance(kind, str):
            self.reply.add_block((*place, _WHOLE, 0), OpaqueBlock(_WIRE, make_json_safe(item)))
        else:
            self.reply.notes.setdefault("unread", []).append(make_json_safe(item))

    def _answer(self, place: Place, item: dict[str, Any]) -> None:
        """The output of a call that the service ran by itself: the two are a pair, and nobody's to run.

        SDK: ResponseFunctionToolCallOutputItem, where a program of the service called (`caller`).
        """
        asked = self._asked.pop(as_text(item.get("call_id")), None)
        if asked is not None:
            self.reply.replace_block(asked[0], OpaqueBlock(_WIRE, make_json_safe(asked[1])))
        self.reply.add_block((*place, _WHOLE, 0), OpaqueBlock(_WIRE, make_json_safe(item)))

    def _message(self, place: Place, item: dict[str, Any]) -> None:
        self._phases[place] = as_text(item.get("phase")) or self._phases.get(place, "")
        for number, part in enumerate(as_list(item.get("content"))):
            held = as_object(part)
            key = (*place, SAID, number)
            refused = held.get("type") == "refusal"
            text = as_text(held.get("refusal" if refused else "text"))
            if not self.reply.has_block(key):
                self.say(key, text, refused)
            if text:
                self.reply.replace_text(key, text)
            if refused:
                self._refuse(key)
            self._citations.pop(key, None)
            if cited := as_list(held.get("annotations")):
                self.reply.add_metadata(key, citations=make_json_safe(cited))
            self.reply.close(key)
        for text_key in self._texts.get(place, ()):  # also those that began before their phase was known
            self._sign_text(text_key)

    def _reasoning(self, key: Key, item: dict[str, Any]) -> None:
        text = reasoning_text(item)
        if not self.reply.has_block(key):
            self.reply.add_thinking(key, text)
        elif text:
            self.reply.replace_text(key, text)
        self.reply.add_state(key, **reasoning_state(item))
        self.reply.close(key)

    def _call(self, key: Key, item: dict[str, Any]) -> None:
        arguments: Any = item.get("arguments")
        begun = self.reply.get_arguments(key)
        self.reply.add_tool_call(key, _call_id(item), item.get("name"), "" if begun else as_text(arguments))
        if isinstance(arguments, dict) or as_text(arguments):
            self.reply.replace_arguments(key, cast("object", arguments))
        if item.get("status") == "incomplete":
            self.reply.add_metadata(key, incomplete=True)
        self._sign_call(key, item)
        self.reply.close(key)

    def _custom_call(self, key: Key, item: dict[str, Any]) -> None:
        text = as_text(item.get("input"))
        begun = self.reply.get_arguments(key)
        self.reply.add_tool_call(key, _call_id(item), item.get("name"), "" if begun else text)
        self.reply.replace_arguments(key, custom_input(text or begun))
        self._sign_call(key, item, CUSTOM_CALL)
        self.reply.close(key)

    def _sign_call(self, key: Key, item: dict[str, Any], known: dict[str, Any] | None = None) -> None:
        held = {name: item[name] for name in CALL_FIELDS if item.get(name)}
        fields = {**(known or {}), **make_json_safe(held)}
        self.reply.add_state(
            key, item_id=self._ids.get((key[0], key[1])) if self._thoughts else None, fields=fields or None
        )
        self._asked[_call_id(item)] = key, item

    def say(self, key: Key, text: str, refused: bool = False) -> None:
        """A piece of a message's text, or of its refusal."""
        if not text:
            return
        begins = not self.reply.has_block(key)
        self.reply.add_text(key, text)
        if begins:
            self._texts.setdefault((key[0], key[1]), []).append(key)
            self._sign_text(key)
        if begins and refused:
            self._refuse(key)

    def _refuse(self, key: Key) -> None:
        if self.reply.has_block(key):
            self.refused = True
            self.reply.add_metadata(key, refusal=True)
            self._refusals.add(key)
            self._sign_text(key)

    def _sign_text(self, key: Key) -> None:
        """What a text goes back with: the phase of its message, as far as it is known, and what it is."""
        phase = self._phases.get((key[0], key[1]))
        fields = {**(REFUSAL_PART if key in self._refusals else {}), **({"phase": phase} if phase else {})}
        if fields:
            self.reply.add_state(key, fields=fields)

    def cite(self, key: Key, found: object) -> None:
        """A citation of a text: the finished item has them all."""
        self._citations.setdefault(key, []).append(make_json_safe(found))

    def mark_cut(self) -> None:
        """Calls that were cut before their first argument say so: nothing else shows it."""
        for place, item in self._open.items():
            key = (*place, CALL, 0)
            if str(item.get("type")) in _CALLS and not self.reply.get_arguments(key).strip():
                self.reply.add_metadata(key, incomplete=True)

    def close(self) -> None:
        """Citations of texts that were never done, and what the service was doing when the stream broke off."""
        for key, cited in self._citations.items():
            self.reply.add_metadata(key, citations=cited)
        self._sign_items()
        begun = [item for item in self._open.values() if str(item.get("type")) not in _SHOWN]
        if begun:
            self.reply.notes["incomplete_parts"] = make_json_safe(begun)

    def _sign_items(self) -> None:
        """What blocks go back with that is known at the end: the ids of their items, and what followed reasoning.

        Calls were signed when they were complete.
        """
        for place, texts in self._texts.items():
            if any(before < place for before in self._thoughts):
                for key in texts:
                    self.reply.add_state(key, item_id=self._ids.get(place))
        for place, following in pairwise(sorted(self._ids)):
            if place in self._thoughts:
                state = reasoning_state(self._thoughts[place], self._ids[following])
                self.reply.add_state((*place, THINKING, 0), fields=state["fields"])


def _call_id(item: dict[str, Any]) -> str:
    return as_text(item.get("call_id")) or as_text(item.get("id"))


def picture_of(item: dict[str, Any]) -> ImageBlock | None:
    """The picture of an `image_generation_call` that succeeded; None for any other item."""
    data = as_text(item.get("result"))
    if item.get("type") != IMAGE_CALL or not data or data.startswith("data:"):
        return None
    format = as_text(item.get("output_format")) or "png"
    media_type = {"svg": "image/svg+xml", "jpg": "image/jpeg"}.get(format, f"image/{format}")
    known = {name: item[name] for name in ("id", "revised_prompt", "size") if isinstance(item.get(name), str)}
    try:
        return ImageBlock(Base64Source(media_type, data), metadata=make_json_safe(known) or None)
    except MessageError:
        return ImageBlock(Base64Source("image/png", data), metadata=make_json_safe(known) or None)


def image_state(item: dict[str, Any]) -> dict[str, Any]:
    """Returns the opaque state of a generated image, as fields of OpaqueState: its id, its item's other fields."""
    others = {
        key: value for key, value in item.items() if key not in ("id", "type", "result") and value is not None
    }
    return {"item_id": as_text(item.get("id")) or None, "fields": {IMAGE_CALL: make_json_safe(others)}}
