"""Tests of `agentkit.ledger`."""
