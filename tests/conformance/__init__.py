"""Our requests at real servers and parsers of others, which know nothing of us (extra `conformance`)."""
