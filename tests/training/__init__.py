"""Tests of samples, loss masks and data sets."""
