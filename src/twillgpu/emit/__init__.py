"""From warp programs to source text, and from source text to machine code that is checked offline."""
