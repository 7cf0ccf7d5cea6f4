"""Get a corpus: `multi30k`, `libreoffice-help`, or the `demo` corpus that comes with Dragoman."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.corpora import embedded, libreoffice_help, multi30k

app = typer.Typer(no_args_is_help=True, help=__doc__)


@app.command("multi30k")
def data_multi30k(
    from_dir: Annotated[
        Path | None, typer.Option("--from", help="Folder that has the files. [default: download them]")
    ] = None,
    to: Annotated[Path, typer.Option(help="Where to put them.")] = Path("data/multi30k"),
) -> None:
    """Multi30k: 29,000 image captions in English, German, French and Czech, with checksums."""
    for path in multi30k.fetch(to, from_dir):
        typer.echo(path)


@app.command("libreoffice-help")
def data_libreoffice_help(
    from_dir: Annotated[Path, typer.Option("--from", help="Folder that the packages were unpacked into.")],
    src: Annotated[str, typer.Option(help="The source's language, as its folder is called.")] = "en-US",
    tgt: Annotated[str, typer.Option(help="The target's: de, eu, gl, km, vi ...")] = "de",
    to: Annotated[Path | None, typer.Option(help="Where to write. [default: data/libreoffice-help-SRC-TGT]")] = None,
) -> None:
    """LibreOffice's help in 35 languages, paragraphs with their markup, from Debian's libreoffice-help-* packages."""
    codes = [code.partition("-")[0].lower() for code in (src, tgt)]
    folder = to or Path(f"data/libreoffice-help-{codes[0]}-{codes[1]}")
    for split, pairs in libreoffice_help.write(from_dir, src, tgt, folder).items():
        typer.echo(f"{folder}/{split}.{codes[0]}.gz, .{codes[1]}.gz: {pairs:,} pairs")


@app.command("demo")
def data_demo(
    pair: Annotated[str, typer.Option(help="de-en, zh-en, en-de or en-zh.")] = "de-en",
    to: Annotated[Path, typer.Option(help="Where to write train, valid and test.")] = Path("data/demo"),
    train_size: Annotated[int | None, typer.Option(min=1, help="Training pairs.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, another corpus.")] = 1,
) -> None:
    """Write the embedded corpus to files, to look at it or to train on it as on your own."""
    sizes = {**embedded.SIZES, "train": train_size or embedded.SIZES["train"]}
    for path in embedded.write(to, pair, seed, sizes):
        typer.echo(path)
