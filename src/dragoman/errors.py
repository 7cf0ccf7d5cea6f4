"""The one exception for mistakes that a person can mend."""


class DragomanError(ValueError):
    """Bad input, a bad setting, a damaged file.

    The message is one line: what is wrong, in which file and line where there is one, and what to do about it.
    The command line prints it to stderr and exits with code 2; anything else that is raised is a bug of ours.
    """
