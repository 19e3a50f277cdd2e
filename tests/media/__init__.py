"""Tests of media."""
