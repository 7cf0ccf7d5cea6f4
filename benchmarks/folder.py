"""A company's first day: a folder of 75 packages of catalogues and help to a translator that is served, by the clock.

    dragoman data debian --pair en-fr --to data/debian-en-fr
    python benchmarks/folder.py folder data/debian-en-fr/files data/first-day     # copies the 75 packages
    python benchmarks/folder.py train data/first-day runs/first-day --minutes 28  # one command, then a first answer
    python benchmarks/folder.py serve runs/first-day                              # the answer alone

`train` says how long it took until the server gave its first translation.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

PACKAGES = """
    amule-common anjuta-common ardour-data audacity-data cairo-dock-plug-in-data calligraplan calligrasheets-data
    cinnamon-l10n claws-mail-i18n coreutils darktable digikam-data dolphin-emu-data e2fsprogs-l10n evolution-common
    filezilla-common fontforge-common freeciv-data freeipa-common frescobaldi gimp-data git gnome-commander-data
    gnome-control-center-data gnome-user-docs gnucash-common gnumeric-common gnupg-l10n gramps gretl grisbi-common
    inkscape installation-guide k3b-i18n kate5-data kdevelop-l10n kile-l10n kleopatra kmymoney-common
    konversation-data krita-l10n krusader kvirc-data labplot-data libgda-5.0-common libgegl-common libgladeui-common
    libgphoto2-l10n libgtk-3-common libkf5kdelibs4support-data lyx-common mailutils-common manaplus-data
    mate-user-guide mkvtoolnix network-manager orca php-horde-imp phpmyadmin picard pidgin-data pspp
    python3-django-horizon r-cran-rcmdr rkward-data subversion sylpheed-i18n sympa tortoisehg ufoai-misc
    util-linux-locales vlc-l10n weechat-core wordpress-l10n wx3.2-i18n
""".split()  # noqa: SIM905 - a list of quoted words is three times as long
"""Those with most pairs among programs that a desktop has, and help pages; none of compilers, maps and databases."""
DRAGOMAN = [sys.executable, "-m", "dragoman"]


def copy(files: Path, to: Path) -> None:
    """Copy the packages that there are."""
    for name in PACKAGES:
        if (files / name).is_dir():
            shutil.copytree(files / name, to / name, dirs_exist_ok=True)
        else:
            print(f"{files} has no {name}", file=sys.stderr)


def train(folder: Path, run: Path, minutes: float, languages: tuple[str, str]) -> None:
    """Train on a folder, serve the run, ask it for one line; print the times of both."""
    started = time.monotonic()
    source, target = languages
    subprocess.run(
        [*DRAGOMAN, "train", "--files", str(folder), "--src-lang", source, "--tgt-lang", target,
         "--budget", f"{60 * minutes:g}s", "--run", str(run)],
        check=True,
    )  # fmt: skip
    trained = time.monotonic() - started
    row = serve(run, languages)
    print(json.dumps({"trained_s": round(trained), "all_s": round(time.monotonic() - started), **row}))


def serve(run: Path, languages: tuple[str, str]) -> dict[str, Any]:
    """Serve a run and ask it for one line: the answer, and the seconds from the start of the server to it."""
    started = time.monotonic()
    port = free_port()
    server = subprocess.Popen([*DRAGOMAN, "serve", str(run), "--port", str(port)])
    try:
        translation = first_answer(port, languages)
        answered = time.monotonic() - started
    finally:
        server.terminate()
        server.wait()
    return {"served_s": round(answered, 1), "cores": os.cpu_count(), "translation": translation}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def first_answer(port: int, languages: tuple[str, str]) -> str:
    """The answer of a server as soon as it is ready."""
    address = f"http://127.0.0.1:{port}"
    until = time.monotonic() + 600  # a machine that other work fills imports slowly
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(f"{address}/ready").close()
            break
        except OSError:  # it does not listen yet, or says that it is loading
            time.sleep(0.1)
    source, target = languages
    body = json.dumps({"q": "Save the file before you close the window.", "source": source, "target": target})
    request = urllib.request.Request(f"{address}/translate", body.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        translation: str = json.load(answer)["translatedText"]
        return translation


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["folder", "train", "serve"])
    parser.add_argument("source", type=Path, help="the files; the folder of packages; the run")
    parser.add_argument("target", type=Path, nargs="?", help="the folder to write; the run directory to write")
    parser.add_argument("--minutes", type=float, default=28.0)
    parser.add_argument("--languages", nargs=2, default=["en", "fr"])
    arguments = parser.parse_args()
    if arguments.what == "folder":
        copy(arguments.source, arguments.target)
    elif arguments.what == "train":
        train(arguments.source, arguments.target, arguments.minutes, tuple(arguments.languages))
    else:
        print(json.dumps(serve(arguments.source, tuple(arguments.languages))))


if __name__ == "__main__":
    main()
