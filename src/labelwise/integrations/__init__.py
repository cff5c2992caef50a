"""Models of other systems, read."""
