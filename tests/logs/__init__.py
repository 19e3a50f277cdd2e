"""Tests of `agentkit.logs`."""
