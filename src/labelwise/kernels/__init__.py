"""Every @njit function and nothing else. Tests compare the public ones with plain numpy (tests/reference/)."""
