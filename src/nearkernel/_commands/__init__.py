"""The command line: one folder per command, and what commands share."""
