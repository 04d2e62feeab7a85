"""An independent check of schedules, from the definitions."""
