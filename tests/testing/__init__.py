"""Tests of `agentkit.testing`."""
