"""Formatters that write prompts for `/v1/completions` with the chat template of a model.

Facts about the servers, read on 2026-11-26:

- vLLM (vllm/entrypoints/openai/completion/protocol.py) adds the bos token to a prompt, unless
  `add_special_tokens` is false. vLLM removes control tokens from the text of a reply, unless `skip_special_tokens`
  is false, and always removes the token that ended the reply.
- llama.cpp (tools/server) ignores `add_special_tokens`. If the vocabulary of the model requires the bos token,
  llama.cpp adds this token even to a prompt that begins with the token. llama.cpp removes control tokens from the
  text of a reply, except `preserved_tokens`.
- text-generation-inference (router/src/server.rs) adds the bos token if the tokenizer of the model adds this
  token. The server always removes control tokens from the text of a reply.
"""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import (
    ChatTemplateFormatter,
    LegalConversation,
    MultiAgentHistory,
    Request,
    RequestSpec,
)

__all__ = ["OpenAICompletionsFormatter", "OpenAICompletionsMultiAgentFormatter"]


class OpenAICompletionsFormatter(ChatTemplateFormatter):
    """Formatter for `/v1/completions`. Send a request with `client.completions.create(model=…, **request)`.

    The option `template` is required. The request has `prompt`. Its `extra_body` has fields that only vLLM or
    llama.cpp define. The request also has `stop` if the text that ends a turn is not a control token.

    `server_adds_bos` is True if the server adds the bos token. The prompt then omits this token. By default, the
    option is True only if the tokenizer is known to add the token (`ChatTemplate.adds_bos`). If the option is
    False, the prompt contains the bos token of the template, and the request contains `add_special_tokens=False`,
    which only vLLM supports.
    """

    base = ChatTemplateFormatter.base.override({"issuer": "openai-completions"})

    def assumes_server_bos(self) -> bool:
        """Returns True if the tokenizer is known to add the bos token (`ChatTemplate.adds_bos`)."""
        return self.template.adds_bos is True

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request with `prompt`, and with `stop` and `extra_body` if they have content."""
        request = super().convert(legal, task)
        if stop := self.list_stop_texts():
            request["stop"] = stop
        extra: dict[str, Any] = {} if self.server_adds_bos else {"add_special_tokens": False}
        if self.response_template is not None:
            extra["skip_special_tokens"] = False
            if tokens := self.list_reply_tokens():
                extra["preserved_tokens"] = tokens
        return {**request, "extra_body": extra} if extra else request


class OpenAICompletionsMultiAgentFormatter(OpenAICompletionsFormatter):
    """Formatter for `/v1/completions`. Writes the texts of several speakers into one user turn."""

    default_history = MultiAgentHistory
