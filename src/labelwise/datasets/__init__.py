"""Data sets that labelwise makes or fetches."""
