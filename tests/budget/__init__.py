"""Tests of budget."""
