"""Tests of `agentkit.capabilities`."""
