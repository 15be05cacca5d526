"""The commands of a session: each takes the session and the text behind its name, and returns text."""
