"""Tests of vLLM."""
