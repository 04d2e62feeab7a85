"""From Triton source or TTGIR text to the tile IR."""
