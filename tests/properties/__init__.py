"""Property tests: rules that hold for all generated conversations."""
