"""Tests of Ollama chat."""
