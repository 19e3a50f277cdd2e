"""Tests of `agentkit.tools`."""
