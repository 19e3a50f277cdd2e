"""Tests of `agentkit.tokens`."""
