"""The loop body as a dependence graph."""
