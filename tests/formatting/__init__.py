"""Tests of formatting."""
