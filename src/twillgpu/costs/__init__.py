"""Prices, bounds and time resolution."""
