"""`ModelRules`, in which users declare the rules of a local model's chat template."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Final, Literal

from agentkit.argument_checks import check_option
from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.name_rules import NameRule
from agentkit.errors import OptionError
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = ["MISTRAL_CALL_IDS", "ModelRules"]

MISTRAL_CALL_IDS: Final = NameRule(pattern=r"[A-Za-z0-9]{9}", limit=9)
"""Rule of Mistral's templates for call ids: nine letters or digits.

Sources: mistral-common, and the templates on Hugging Face.
"""

_CALL_IDS: Final = {"any": None, "mistral": MISTRAL_CALL_IDS}
"""Maps each name that `ModelRules.call_ids` accepts to a rule for call ids. None allows any id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRules:
    """Rules of a model's chat template, for the option `model_rules`. No server reports these rules.

        gemma_2 = ModelRules(system_role=False, tool_role=False, images=False, alternating_turns=True)
        model = ChatModel("vllm:gemma-2-9b-it", model_rules=gemma_2)

    The ledger records every change that a rule causes. `apply` adds the rules to the target's capabilities.

    Attributes:
        system_role: False if there is no system role. The first user turn then starts with the system prompt.
        tool_role: False if there is no tool role. Tool calls are then sent as assistant text (`CALL_TEXT`), and
            tool results as user text (`RESULT_TEXT`, `ERROR_TEXT`).
        parallel_tool_calls: False if a turn may have only one tool call. Each call is then sent in a separate
            turn, followed by its result.
        images: False if the model accepts no images. Images are then described or dropped, depending on `on_loss`.
            True keeps the provider's capabilities. `audio`, `video` and `documents` work in the same way.
        alternating_turns: True if user and assistant turns must alternate. Consecutive turns of one role are then
            joined, and later system messages become lines of a user turn. If a user turn follows a tool result,
            the assistant turn `RESULT_TURN` is added between them. False if turns need not alternate. None keeps
            the provider's rule.
        call_ids: Call ids that the template accepts: "mistral" (nine letters or digits), "any", or a NameRule.
            None keeps the provider's rule.
    """

    system_role: bool = True
    tool_role: bool = True
    parallel_tool_calls: bool = True
    images: bool = True
    audio: bool = True
    video: bool = True
    documents: bool = True
    alternating_turns: bool | None = None
    call_ids: NameRule | Literal["any", "mistral"] | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        for rule in fields(self):
            if rule.name not in ("alternating_turns", "call_ids"):
                check_option(f"model_rules.{rule.name}", getattr(self, rule.name), bool)
        check_option("model_rules.alternating_turns", self.alternating_turns, bool | None)
        check_option("model_rules.call_ids", self.call_ids, NameRule | str | None)
        if isinstance(self.call_ids, str) and self.call_ids not in _CALL_IDS:
            raise OptionError(
                "model_rules.call_ids",
                f"expected 'any', 'mistral' or a NameRule, got {shorten_repr(self.call_ids, 60)}",
                "Pass one of these words, or a NameRule that describes the ids.",
            )

    def apply(self, capabilities: Capabilities) -> Capabilities:
        """Returns a copy of `capabilities` to which these rules are applied.

        Results are cached: calls with equal arguments return the same object.
        """
        return _apply(self, capabilities)


@lru_cache(256)
def _apply(rules: ModelRules, capabilities: Capabilities) -> Capabilities:
    media = {"image": rules.images, "audio": rules.audio, "video": rules.video, "document": rules.documents}
    refused = {kind for kind, is_accepted in media.items() if not is_accepted}
    changes: dict[str, Any] = {f"media.{kind}": None for kind in refused}
    changes["media.result_kinds"] = capabilities.media.result_kinds - refused
    changes["media.audio_by_id"] = capabilities.media.audio_by_id and rules.audio
    changes["turns.system_role"] = capabilities.turns.system_role and rules.system_role
    changes["tools.role"] = capabilities.tools.role and rules.tool_role
    changes["tools.parallel_calls"] = capabilities.tools.parallel_calls and rules.parallel_tool_calls
    if rules.alternating_turns is not None:
        changes["turns.alternate"] = rules.alternating_turns
    if rules.call_ids is not None:
        rule = rules.call_ids
        changes["tools.call_ids"] = rule if isinstance(rule, NameRule) else _CALL_IDS[rule]
    return capabilities.override(changes)
