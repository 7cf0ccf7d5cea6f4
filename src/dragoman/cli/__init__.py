"""The command line: a command parses its arguments and calls one function."""
