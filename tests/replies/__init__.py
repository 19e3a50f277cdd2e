"""Tests of `agentkit.replies`."""
