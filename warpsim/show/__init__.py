"""Results as people see them: the command line, views, pages, the debugger's commands, pytest."""
