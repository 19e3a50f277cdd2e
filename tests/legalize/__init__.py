"""Tests of `agentkit.legalize`."""
