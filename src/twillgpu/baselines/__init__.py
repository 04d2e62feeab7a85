"""Schedules as people and compilers make them today, to set beside the optimum."""
