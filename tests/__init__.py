"""Tests of agentkit. The folders mirror the packages."""
