"""The choice among candidates: tile sizes, sub-tiling, groups and registers, ranked by the time of a launch."""
