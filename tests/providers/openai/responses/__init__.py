"""Tests of OpenAI Responses."""
