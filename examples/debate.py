"""Three agents debate under a moderator. All agents share one history, but the notes of the moderator are private.

    python examples/debate.py                                      with a server on this machine, without a key
    python examples/debate.py openai-responses:gpt-6 …             with providers, assigned to the agents in turn

`MultiAgentHistory(viewer=…)` writes the turns of one agent as assistant turns, and all other turns as lines
with their names. No agent can imitate another. `visible` hides the notes of the moderator from the other agents.
"""

import sys
from collections.abc import Sequence

import anyio

from agentkit import Budget, ChatModel, Msg, MultiAgentHistory
from agentkit.testing import LoopbackServer, demo_reply

QUESTION = "Should the town build a new library?"
SPEAKERS = {
    "Ada": "You are for it: people need a place to meet.",
    "Ben": "You are against it: the town has no money.",
    "Cleo": "You look for a third way.",
}
MODERATOR = "Moira"


def create_history_policy(name: str) -> MultiAgentHistory:
    """Returns the history policy of one agent, which hides the notes of other agents."""
    return MultiAgentHistory(
        viewer=name, visible=lambda msg: not (msg.metadata or {}).get("note") or msg.name == name
    )


def create_system_prompt(name: str, role: str) -> Msg:
    """Returns the system prompt of one agent."""
    return Msg("system", f"You are {name}. {role} Two sentences at most.", "system")


async def take_turn(name: str, role: str, model: ChatModel, history: Sequence[Msg]) -> Msg:
    """Returns one turn of an agent."""
    return await model.generate([create_system_prompt(name, role), *history])


async def debate(models: dict[str, ChatModel], rounds: int = 2) -> list[Msg]:
    """Runs the debate. Returns all messages; the last message is the verdict of the moderator."""
    history = [Msg(MODERATOR, QUESTION, "user")]
    for number in range(rounds):
        for name, role in SPEAKERS.items():
            history.append(await take_turn(name, role, models[name], history))
        note = Msg(MODERATOR, f"Round {number + 1}: all three have spoken.", "assistant", metadata={"note": True})
        history.append(note)
    verdict = await take_turn(MODERATOR, "Sum up, and name the best argument.", models[MODERATOR], history)
    return [*history, verdict]


async def main(names: Sequence[str], options: dict[str, object] | None = None) -> None:
    """Runs the debate and prints it."""
    people = [*SPEAKERS, MODERATOR]
    models = {
        name: ChatModel(
            names[index % len(names)],
            history=create_history_policy(name),
            budget=Budget(50_000),
            client_options=options,
            max_tokens=400,
        )
        for index, name in enumerate(people)
    }
    try:
        for msg in await debate(models):
            print(
                f"{msg.name}: {msg.text}"
                if not (msg.metadata or {}).get("note")
                else f"({msg.name} notes: {msg.text})"
            )
    finally:
        for model in models.values():
            await model.aclose()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(main, sys.argv[1:])
    else:
        with LoopbackServer(
            lambda body: Msg(
                "x", f"I have heard {len(demo_reply('anthropic', body).text)} characters.", "assistant"
            )
        ) as server:
            anyio.run(main, ["anthropic:any"], server.client_options("anthropic"))
