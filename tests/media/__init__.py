"""Tests of `agentkit.media`."""
