"""Machines: data files, the record, the loader."""
