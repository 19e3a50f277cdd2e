"""One conversation for every provider: the size of each request, and the outcome of each block.

Run it from the project's root: python examples/swap_provider.py [FILE]
"""

import json
import sys
from collections import Counter
from pathlib import Path

import anyio

from agentkit import available_providers, load_messages, load_provider

FILE = Path(__file__).parent / "data" / "debate.json"


async def main(file: Path) -> None:
    """Prints a line for each provider, and a line for each block that the request loses."""
    msgs = load_messages(await anyio.Path(file).read_bytes())
    for name in available_providers():
        if load_provider(name).layout.is_rendered:
            continue  # the requests of this provider are texts, and need the chat template of a model
        plan = await load_provider(name).multi_agent_formatter().plan(msgs)
        outcomes = Counter(entry.disposition.word for entry in plan.ledger.entries)
        size = len(json.dumps(plan.request))
        summary = ", ".join(f"{count} {word}" for word, count in sorted(outcomes.items()))
        print(f"{name:21} {size:6} characters  {summary}")
        for place, reason in plan.ledger.losses:
            print(f"{'':21} {place}: {reason}")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
