"""Why no smaller interval is possible, and what the least change is that would help."""
