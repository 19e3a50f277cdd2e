"""Tests of DashScope."""
