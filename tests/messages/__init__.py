"""Tests of `agentkit.messages`."""
