"""Stage 0: texts to features."""
