"""Tests of `agentkit.formatting`."""
