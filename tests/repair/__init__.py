"""Tests of `agentkit.repair`."""
