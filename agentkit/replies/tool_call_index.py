"""`ToolCallIndex`: finds the tool call to which each piece of a stream belongs.

An event of a stream can have a list of tool call entries. An entry begins a tool call or continues an earlier tool
call. Servers identify the tool call by an index, by its id, by both, or by neither.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.replies.builder import BlockKey, ReplyBuilder

__all__ = ["ToolCallIndex"]


class ToolCallIndex:
    """Collection of the tool calls of one reply, with the key of each call in the `ReplyBuilder`.

    Iteration yields the keys in the order of the tool calls in the message: by server index, then by arrival.

    In Chat Completions, each entry has the `index` of its tool call (openai-python: ChoiceDeltaToolCall). Some
    servers omit the index, start at 1, leave gaps, or send 0 for all tool calls. Four rules cover these servers:

    - A new id begins a tool call, unless the tool call at this index has no id yet. An empty id is ignored.
    - A repeated id continues the tool call with this id.
    - The name of another tool begins a tool call if the arguments of the current tool call are complete.
    - If an entry has a name, and an earlier entry of the same event has the same index, the entries are two tool
      calls. This rule does not apply while the argument text of the first tool call is incomplete.

    Args:
        reply: Builder of the reply.
        group: First number of each key. This number determines the position of the tool calls among the message's
            blocks.
    """

    def __init__(self, reply: ReplyBuilder, group: int) -> None:
        self._reply = reply
        self._group = group
        self._keys: list[BlockKey] = []  # keys of the tool calls, in order of arrival
        self._by_index: dict[int, BlockKey] = {}
        # Maps the index and id that a tool call has in the stream to the key of the call. If the server sends
        # indexes, the value for (None, id) is the key of the first call with this id.
        self._by_id: dict[tuple[int | None, str], BlockKey] = {}
        self._names: dict[BlockKey, str] = {}

    def __iter__(self) -> Iterator[BlockKey]:
        return iter(sorted(self._keys))

    @property
    def last(self) -> BlockKey | None:
        """Key of the last tool call in the message. None if the message has no tool call."""
        return max(self._keys, default=None)

    def begin(self, index: object = None) -> BlockKey:
        """Begins a tool call and returns its key.

        A tool call without an index gets a position directly after the most recent tool call.
        """
        if type(index) is not int:
            key = (self._group, self._keys[-1][1] if self._keys else 0, len(self._keys))
        else:
            key = self._by_index[index] = (self._group, index, len(self._keys))
        self._keys.append(key)
        return key

    def get_latest(self, index: object) -> BlockKey | None:
        """Returns the key of the newest tool call with this index, or None if no tool call has the index.

        If `index` is not an int, returns the key of the newest of all tool calls. An entry with neither an id nor
        a name continues the returned tool call.
        """
        if type(index) is int:
            return self._by_index.get(index)
        return self._keys[-1] if self._keys else None

    def find(self, index: object, id: str, name: str, used: set[BlockKey]) -> BlockKey:
        """Returns the key of the tool call to which an entry belongs. Begins a tool call if no tool call matches.

        Args:
            index: Index of the entry. Any value that is not an int means that the server sends no index.
            id: Id of the tool call, or an empty string.
            name: Name of the tool, or an empty string.
            used: Keys of the tool calls to which the earlier entries of the same event belong.
        """
        key = self._find_key(index, id, name, used)
        if key is None:
            key = self.begin(index)
        if id:
            self._by_id[index if type(index) is int else None, id] = key
            self._by_id.setdefault((None, id), key)
        if name:
            self._names.setdefault(key, name)
        return key

    def _find_key(self, index: object, id: str, name: str, used: set[BlockKey]) -> BlockKey | None:
        """Returns the key of the tool call that an entry continues, or None if the entry begins a tool call."""
        key = self._by_id.get((index if type(index) is int else None, id)) if id else None
        if key is not None:
            return None if self._has_other_name(key, name) else key
        key = self.get_latest(index)
        if key is None or not (id or name):
            return key
        has_other_id = bool(id) and self._reply.get_call_id(key) != ""
        is_repeated = bool(name) and key in used and self._is_complete(key)
        return None if has_other_id or is_repeated or self._has_other_name(key, name) else key

    def is_first_with_id(self, key: BlockKey, id: str) -> bool:
        """Returns True if the tool call with the key `key` is the first tool call with this id."""
        return self._by_id.get((None, id)) == key

    def _has_other_name(self, key: BlockKey, name: str) -> bool:
        """Returns True if a tool call has complete arguments, and the name of its tool is not `name`."""
        return bool(name) and self._names.get(key, name) != name and self._reply.has_complete_arguments(key)

    def _is_complete(self, key: BlockKey) -> bool:
        """Returns True if the argument text of a tool call is empty or ends with a closing brace."""
        text = self._reply.get_arguments(key).rstrip()
        return not text or text.endswith("}")
