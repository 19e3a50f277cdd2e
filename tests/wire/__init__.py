"""Checks of native requests that are independent of agentkit: shape, order, and the requests of the real SDKs."""
