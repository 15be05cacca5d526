"""One client: its process, its threads, its memory, its modules and its launches."""
