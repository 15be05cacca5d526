"""Views: data and text about instructions and runs. They return, and never print."""
