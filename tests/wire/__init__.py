"""Checks of native requests that know nothing of agentkit: shape, order, and what the real SDK sends."""
