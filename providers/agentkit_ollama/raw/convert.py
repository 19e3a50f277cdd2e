"""Formatters that write prompts for Ollama's `/api/generate` with the chat template of a model.

Facts about the server, from its source (server/routes.go, model/vocabulary.go, runner; read on 2026-11-26):

- With `raw`, the server uses the prompt unchanged, except for the bos token. If the vocabulary of the model
  requires this token, the server adds the token even to a prompt that begins with the token.
- Control tokens stay in the text of a reply, except the token that ended the reply.
- For a model with thinking, the server removes thinking from the text of a reply, unless `think` is false.
"""

from __future__ import annotations

from agentkit.provider_kit import (
    ChatTemplateFormatter,
    LegalConversation,
    MultiAgentHistory,
    Request,
    RequestSpec,
)

__all__ = ["OllamaRawFormatter", "OllamaRawMultiAgentFormatter"]


class OllamaRawFormatter(ChatTemplateFormatter):
    """Formatter for `/api/generate` in raw mode.

    Send the request with the SDK: `await ollama.AsyncClient().generate(model=…, **request)`.

    The option `template` is required. The request has `prompt`, `raw` and `think`, and the option `stop` if the
    text that ends a turn is not a control token.

    For most models, the server adds the bos token to the prompt. The prompt therefore omits the bos token that the
    template writes at the start of the text. If the tokenizer is known to add no bos token
    (`ChatTemplate.adds_bos` is False), the prompt keeps the token. The option `server_adds_bos` has precedence
    over both rules.
    """

    base = ChatTemplateFormatter.base.override({"issuer": "ollama"})

    def assumes_server_bos(self) -> bool:
        """Returns True unless the tokenizer is known to add no bos token (`ChatTemplate.adds_bos` is False)."""
        return self.template.adds_bos is not False

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request with `prompt`, `raw` and `think`, and with `options` if there are stop texts."""
        request = {**super().convert(legal, task), "raw": True, "think": False}
        stop = self.list_stop_texts()
        return {**request, "options": {"stop": stop}} if stop else request


class OllamaRawMultiAgentFormatter(OllamaRawFormatter):
    """Formatter for `/api/generate` in raw mode. Writes the texts of several speakers into one user turn."""

    default_history = MultiAgentHistory
