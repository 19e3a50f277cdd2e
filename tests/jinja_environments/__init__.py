"""Tests of `agentkit.prompts`."""
