"""The decorator ``twillgpu.optimize``: a kernel's launches, through its optimal schedule where that is possible."""
