"""Tests of capabilities."""
