"""Three judges with one shared history. Each judge returns a typed verdict, and the majority decides.

    python examples/typed_judges.py                            with prepared replies, without a key
    python examples/typed_judges.py openai-responses:gpt-6 …   with providers, assigned to the judges in turn

`MultiAgentHistory(viewer=…)` writes the replies of one judge as assistant turns, and all other turns as lines with
their names. In the second round, each judge has read the verdicts of the others.
"""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import anyio
from pydantic import BaseModel, Field

from agentkit import ChatModel, Msg, MultiAgentHistory
from agentkit.prompts import Signature, ask
from agentkit.testing import ScriptedModel

QUESTION = Msg("Bob", "How do I keep bread fresh?", "user")
ANSWER = Msg("Friday", "Keep it in the refrigerator. It stays fresh for two weeks there.", "assistant")
JUDGES = {"Ada": "The answer is correct.", "Ben": "The answer is brief.", "Cleo": "The answer helps Bob."}
REPLIES = {
    "Ada": [("reject", 2, "Bread gets stale faster in the cold."), ("reject", 1, "Two weeks are wrong, too.")],
    "Ben": [("accept", 9, "It has two short sentences."), ("revise", 6, "It is brief, but Ada is right.")],
    "Cleo": [("revise", 5, "It names only one place."), ("reject", 3, "Wrong advice does not help Bob.")],
}


class Verdict(BaseModel):
    """Verdict of one judge."""

    verdict: Literal["accept", "revise", "reject"]
    score: int = Field(ge=0, le=10)
    reason: str = Field(description="one sentence")


class Judge(Signature[Verdict]):
    """Judge Friday's answer to Bob by one criterion. Consider the verdicts of the other judges."""

    criterion: str


def create_model(judge: str, name: str | None) -> ChatModel:
    """Returns the model of a judge. Without a name, the model has prepared replies."""
    history = MultiAgentHistory(viewer=judge)
    if name is not None:
        return ChatModel(name, history=history)
    replies = (json.dumps(dict(zip(Verdict.model_fields, values, strict=True))) for values in REPLIES[judge])
    return ScriptedModel([f"[[ ## answer ## ]]\n{reply}" for reply in replies], history=history)


async def judge_answer(models: Mapping[str, ChatModel], rounds: int = 2) -> dict[str, Verdict]:
    """Returns the last verdict of each judge."""
    history = [QUESTION, ANSWER]
    verdicts: dict[str, Verdict] = {}
    for _ in range(rounds):
        for name, criterion in JUDGES.items():
            prediction = await ask(models[name], Judge(criterion=criterion), history=history, retries=1)
            history.append(prediction.message)  # its name is the name of the judge
            verdicts[name] = prediction.value
    return verdicts


def find_majority(verdicts: Mapping[str, Verdict]) -> str:
    """Returns the verdict of more than half of the judges, or `revise` if there is no such verdict."""
    word, votes = Counter(verdict.verdict for verdict in verdicts.values()).most_common(1)[0]
    return word if votes > len(verdicts) / 2 else "revise"


async def main(names: Sequence[str]) -> None:
    """Judges the answer, and prints the verdicts and the majority."""
    models = {
        judge: create_model(judge, names[index % len(names)] if names else None)
        for index, judge in enumerate(JUDGES)
    }
    try:
        verdicts = await judge_answer(models)
    finally:
        for model in models.values():
            await model.aclose()
    for name, verdict in verdicts.items():
        print(f"{name}: {verdict.verdict} ({verdict.score}/10). {verdict.reason}")
    print(f"Majority: {find_majority(verdicts)}")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
