"""Time: a warp program run cycle by cycle on one SM, and what follows for the whole kernel."""
