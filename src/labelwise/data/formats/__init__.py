"""One file for each format of data."""
