"""Tests of `agentkit.budget`."""
