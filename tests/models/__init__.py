"""Tests of `agentkit.models`."""
