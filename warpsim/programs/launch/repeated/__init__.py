"""A launch executed again, from the memory as it was: with other bytes, under other schedules."""
