"""Tests of `agentkit.jinja_environments`."""
