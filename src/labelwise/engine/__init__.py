"""Where work runs: local threads."""
