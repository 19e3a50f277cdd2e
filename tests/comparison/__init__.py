"""Tests of `agentkit.comparison`."""
