"""Tests of DeepSeek."""
