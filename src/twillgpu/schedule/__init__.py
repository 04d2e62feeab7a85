"""The search for the smallest initiation interval."""
