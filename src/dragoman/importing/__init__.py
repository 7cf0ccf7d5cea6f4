"""Models of other programs as run directories: the same to the last bit, or refused with the reasons."""
