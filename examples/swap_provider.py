"""One conversation, every provider: what each request holds, and what became of each block on the way.

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
    """Print a line for each provider, and one for each block that it cannot carry."""
    msgs = load_messages(await anyio.Path(file).read_bytes())
    for name in available_providers():
        plan = await load_provider(name).multi_agent_formatter().plan(msgs)
        fates = Counter(entry.disposition.word for entry in plan.ledger.entries)
        size = len(json.dumps(plan.request))
        told = ", ".join(f"{count} {word}" for word, count in sorted(fates.items()))
        print(f"{name:21} {size:6} characters  {told}")
        for place, reason in plan.ledger.losses:
            print(f"{'':21} {place}: {reason}")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
