"""The parts that several models have in common: read once, held once, saved once."""
