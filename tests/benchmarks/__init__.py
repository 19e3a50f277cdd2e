"""What agentkit costs, beside a hand-written floor and beside its peers: `python -m tests.benchmarks`."""
