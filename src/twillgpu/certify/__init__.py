"""Certificates: what was claimed of a search, and how each claim was checked by something other than the search."""
