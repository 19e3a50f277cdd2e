"""Tests of OpenAI Chat Completions and of compatible vendors."""
