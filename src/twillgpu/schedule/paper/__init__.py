"""The method of the paper as published (``docs/paper.md``): normalised costs, integer program, SMT, two loops."""
