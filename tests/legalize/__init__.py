"""Tests of legalize."""
