"""Requests of agentkit, tested with real servers and independent parsers (extra `conformance`)."""
