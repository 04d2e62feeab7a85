"""Twill: optimal software pipelining and warp specialization for tensor core GPU kernels."""

__version__ = "0.1.0"
