"""Not a test itself: the command line on a Windows that is none.

    python pretended_windows.py ARGUMENT ...

For Dragoman's modules alone, what Windows does not have is not there: modules (`fcntl`, `resource` ...), functions of
`os` and signals. For the whole process its files are as they are there: no directory is opened, only what is open for
writing is synced, no file that is open or mapped is renamed, replaced or deleted nor a folder that holds one, `select`
knows no files, text is written with CR LF and in cp1252 where nothing else is said, no link is made, no file gets a
name that it reserves (`aux`, `a:b`), and nothing is renamed to a name that is there. It knows nothing of paths with
drives, of processes, consoles and signals.
"""

import builtins
import errno
import fcntl
import io
import os
import re
import select
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "readline", "curses"}
OF_OS = {
    "fork", "forkpty", "nice", "getuid", "geteuid", "getgid", "getegid", "getpgid", "setpgid", "killpg", "setsid",
    "pread", "pwrite", "posix_fadvise", "posix_fallocate", "sched_getaffinity", "getloadavg", "mkfifo", "mknod",
    "uname", "chown", "fchown", "fchmod", "statvfs", "sysconf", "register_at_fork", "wait", "O_NONBLOCK", "O_DIRECTORY",
    "O_CLOEXEC", "O_NOFOLLOW", "WIFEXITED", "confstr", "openpty", "getgroups",
}  # fmt: skip
NOT_IN_NAMES = re.compile(r"""[<>:"|?*\x00-\x1f]|[ .]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)""", re.IGNORECASE)
OF_SIGNAL = {"SIGHUP", "SIGKILL", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGCHLD", "SIGPIPE", "alarm"}


class Without(ModuleType):
    """A module that lacks some names, and has some of its own."""

    def __init__(self, module: ModuleType, lacking: set[str], **own: Any) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(_module=module, _lacking=lacking, **own)

    def __getattr__(self, name: str) -> Any:
        if name in self._lacking:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}, on Windows")
        return getattr(self._module, name)


def opened(path: Any, flags: int, *arguments: Any, **keywords: Any) -> int:
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))
    return os.open(path, flags, *arguments, **keywords)


def synced(descriptor: int) -> None:
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "Bad file descriptor")
    os.fsync(descriptor)


def in_use() -> set[str]:
    """The files that this process has open or mapped."""
    links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    files = {os.path.realpath(link) for link in links if os.path.isfile(link)}
    with real_open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return files | {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if line.count("/")}


def careful(change: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of `os` on names, refused where Windows does."""

    def careful_change(*paths: Any, **keywords: Any) -> Any:
        used = in_use()
        for path in paths[:2]:
            if isinstance(path, str | bytes | os.PathLike):
                folder = keywords.get("dir_fd")
                place = os.readlink(f"/proc/self/fd/{folder}") if folder is not None else "."
                name = os.path.realpath(os.path.join(place, os.fsdecode(path)))
                if busy := next((file for file in used if file == name or file.startswith(f"{name}/")), None):
                    raise PermissionError(errno.EACCES, f"used by this process: {busy}", os.fsdecode(path))
        if change.__name__ == "rename" and os.path.lexists(paths[1]):
            raise FileExistsError(errno.EEXIST, "File exists", os.fsdecode(paths[1]))
        for path in paths[1:2]:
            named(path)
        return change(*paths, **keywords)

    return careful_change


real_open, real_select, real_import, real_mkdir = io.open, select.select, builtins.__import__, os.mkdir


def named(path: Any) -> Any:
    """The path of a file that is made, whose last name Windows takes."""
    name = os.path.basename(os.fsdecode(path))
    if NOT_IN_NAMES.search(name):
        raise OSError(errno.EINVAL, "Invalid argument", name)
    return path


def mkdir_of_windows(path: Any, *arguments: Any, **keywords: Any) -> None:
    real_mkdir(named(path), *arguments, **keywords)


def open_of_windows(
    file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None, newline: Any = None,
    *rest: Any, **more: Any,
) -> Any:  # fmt: skip
    if mode[0] in "wax" and not isinstance(file, int):
        named(file)
    if "b" not in mode:
        encoding = "cp1252" if encoding in (None, "locale") else encoding
        newline = "\r\n" if newline is None and mode[0] in "wax" else newline
    return real_open(file, mode, buffering, encoding, errors, newline, *rest, **more)


def select_of_windows(*lists: Any) -> Any:
    if any(isinstance(one, int) or hasattr(one, "buffer") for one in lists[0]):
        raise OSError(errno.ENOTSOCK, "an operation was attempted on something that is not a socket")
    return real_select(*lists)


def refused(*arguments: Any, **keywords: Any) -> None:
    raise OSError(errno.EPERM, "a required privilege is not held by the client")


def pretend() -> None:
    stand_ins = {
        "os": Without(os, OF_OS, open=opened, fsync=synced, O_BINARY=0),
        "signal": Without(signal, OF_SIGNAL),
    }

    def import_of_windows(name: str, globals: Any = None, *rest: Any, **more: Any) -> Any:
        if str((globals or {}).get("__name__")).partition(".")[0] == "dragoman":
            if name in MODULES:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name in stand_ins:
                return stand_ins[name]
        return real_import(name, globals, *rest, **more)

    from filelock import FileLock

    release = FileLock.release

    def released(self: Any, *arguments: Any, **keywords: Any) -> None:
        release(self, *arguments, **keywords)
        if not self.is_locked:  # its library deletes it there
            Path(self.lock_file).unlink(missing_ok=True)

    FileLock.release = released  # type: ignore[method-assign]
    builtins.__import__ = import_of_windows
    io.open = builtins.open = open_of_windows  # type: ignore[assignment]
    os.mkdir = mkdir_of_windows
    select.select = select_of_windows
    for name in ("rename", "replace", "unlink", "remove", "rmdir"):
        setattr(os, name, careful(getattr(os, name)))
    for name in ("symlink", "link"):
        setattr(os, name, refused)


if __name__ == "__main__":
    pretend()
    from dragoman.cli.main import main

    sys.exit(main())
