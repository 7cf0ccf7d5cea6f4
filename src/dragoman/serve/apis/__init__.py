"""The APIs of the server, a module for each."""
