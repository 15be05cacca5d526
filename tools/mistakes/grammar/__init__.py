"""Mistakes as data, in dumps and loops along k, and drawn from the grammar that the diagnosis searches."""
