"""Tests of agentkit; they mirror its rooms."""
