"""Plots and reports. matplotlib is imported only when something is drawn."""
