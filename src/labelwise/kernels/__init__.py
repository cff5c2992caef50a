"""Every @njit function, and `preparing`, which compiles them ahead.

Tests compare the public ones with plain numpy (tests/reference/).
"""
