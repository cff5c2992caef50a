"""Every @njit function and nothing else. Each one has a plain numpy twin in tests/reference/."""
