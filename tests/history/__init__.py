"""Tests of `agentkit.history`."""
