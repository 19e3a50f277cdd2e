"""Choice between the two URL paths of DashScope's native API, and conversion of messages for each path.

A model accepts requests on only one of the paths. The content of a message is a string on the text path, and a
list of parts on the multimodal path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from agentkit.provider_kit import Failure, OutgoingRequest, as_list

__all__ = ["UrlPaths"]

_TEXT: Final = "/services/aigc/text-generation/generation"
_MULTIMODAL: Final = "/services/aigc/multimodal-generation/generation"

_WRONG_PATH: Final = re.compile(r"url error", re.IGNORECASE)
"""Pattern for the API error that reports a wrong path for the model.

The text of this error is 'url error, please check url！' (Model Studio docs).
"""


class UrlPaths:
    """Selector of the URL path for each model: the text path or the multimodal path.

    If the API refuses a model on one path, the selector stores the other path for this model.
    """

    def __init__(self) -> None:
        self._learned: dict[str, str] = {}

    def choose(self, model: str, messages: Sequence[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
        """Returns the URL path for a request, and the messages in the format of this path."""
        path = self._learned.get(model) or _find_path(messages)
        return path, _convert(messages, path)

    def reroute(self, outgoing: OutgoingRequest, failure: Failure | None) -> OutgoingRequest | None:
        """Returns a request for the other path if the failure reports that the path is wrong, otherwise None.

        The path of a model changes at most once.
        """
        model = str(outgoing.body["model"])
        if not failure or not _WRONG_PATH.search(failure.message) or model in self._learned:
            return None
        path = self._learned[model] = _MULTIMODAL if outgoing.path == _TEXT else _TEXT
        messages = _convert(outgoing.body["input"]["messages"], path)
        return replace(outgoing, path=path, body={**outgoing.body, "input": {"messages": messages}})


def _find_path(messages: Sequence[Mapping[str, Any]]) -> str:
    """Returns the multimodal path if the content of any message is a list of parts, otherwise the text path."""
    return _MULTIMODAL if any(isinstance(message.get("content"), list) for message in messages) else _TEXT


def _convert(messages: Sequence[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Converts the content of messages to strings (text path) or to lists of parts (multimodal path)."""
    if _find_path(messages) == path:
        return list(messages)
    convert = _join_parts if path == _TEXT else _as_parts
    return [{**message, "content": convert(message.get("content"))} for message in messages]


def _join_parts(content: Any) -> Any:
    """Joins content that has only text parts into a string. Returns any other content unchanged."""
    parts = as_list(content)
    texts = [part["text"] for part in parts if "text" in part]
    return "\n".join(texts) if parts and len(texts) == len(parts) else content


def _as_parts(content: Any) -> Any:
    return [{"text": content}] if isinstance(content, str) and content else content
