"""Tests of Gemini generateContent."""
