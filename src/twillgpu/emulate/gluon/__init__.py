"""Emitted Gluon source on the CPU: the file as it is, on the same machine as warp programs."""
