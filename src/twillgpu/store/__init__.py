"""What was found is kept: a file of schedules and emitted sources in the user's cache folder."""
