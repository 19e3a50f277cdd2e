"""Tests of tokens."""
