"""Get a corpus: `debian`, `multi30k`, `libreoffice-help`, or the `demo` corpus that comes with Dragoman."""

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from dragoman.corpora import debian, embedded, libreoffice_help, multi30k
from dragoman.doctor.assembly import SPLITS, assemble, summary
from dragoman.errors import Error
from dragoman.text.corpus import CollectionConfig

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
    codes = libreoffice_help.codes_of(src, tgt)
    folder = to or Path(f"data/libreoffice-help-{codes[0]}-{codes[1]}")
    for split, pairs in libreoffice_help.write(from_dir, src, tgt, folder).items():
        typer.echo(f"{folder}/{split}.{codes[0]}.gz, .{codes[1]}.gz: {pairs:,} pairs")


@app.command("debian")
def data_debian(
    pair: Annotated[str, typer.Option(help="The languages, as in en-de or pt_BR-en; one of them is English.")],
    to: Annotated[Path | None, typer.Option(help="Where to write. [default: data/debian-PAIR]")] = None,
    from_dir: Annotated[
        Path | None, typer.Option("--from", help="Folder of packages. [default: download them by apt-get]")
    ] = None,
    packages: Annotated[
        Path | None, typer.Option(help="Where packages are kept, for several pairs. [default: TO/packages]")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="Only these: catalogues, manuals, help, handbooks, libreoffice, descriptions; may be repeated.",
        ),
    ] = None,
) -> None:
    """A corpus from Debian's packages: interfaces, manuals, help, handbooks, descriptions of packages (docs/debian.md).

    TO/packages.tsv says what was downloaded: where it is, the same packages are taken again and give the same corpus.
    """
    languages = _languages(pair)
    folder = to or Path(f"data/debian-{pair}")
    paths = debian.in_folder(from_dir) if from_dir else debian.fetch(languages, folder, kinds or (), packages)
    done = debian.unpack(paths, languages, folder)
    paragraphs = ", ".join(f"{kind} {count:,}" for kind, count in sorted(done.paragraphs.items()))
    typer.echo(f"{folder}/files: {done.packages:,} packages, {done.catalogues:,} catalogues")
    typer.echo(f"paragraphs aligned: {paragraphs or 'none'}")
    config = CollectionConfig(paths=[str(folder / debian.FILES)], documents="folder")
    assembly = assemble(config, languages, folder / "corpus")
    for line in summary(assembly):
        typer.echo(line)
    kinds_kept, licences_kept = Counter[str](), Counter[str]()
    for file in assembly.files:
        kept = sum(file.fates[split] for split in SPLITS)
        kinds_kept[debian.kind_of(file.path)] += kept
        licences_kept[debian.licence(folder, file.document)] += kept
    for title, counts in (("kind", kinds_kept), ("licence", licences_kept)):
        typer.echo(f"pairs by {title}:")
        for name, count in counts.most_common():
            typer.echo(f"  {name}: {count:,}")
    typer.echo(f"{folder}/corpus: train, valid and test")


def _languages(pair: str) -> tuple[str, str]:
    """The two languages of `en-de` or `pt_BR-en`."""
    first, _, last = pair.partition("-") if pair.startswith("en-") else pair.rpartition("-")
    if not first or not last:
        raise Error.WRONG_OPTION(f"{pair!r} is no pair of languages", "write it as en-de or de-en")
    return first, last


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
