"""What every toolkit is asked to do: shapes, the corpus that `prepare.py` writes, the command line of a script."""

import argparse
from dataclasses import dataclass
from pathlib import Path

DROPOUT, LABEL_SMOOTHING, CLIP_NORM = 0.3, 0.1, 1.0
LEARNING_RATE, BETAS = 5e-4, (0.9, 0.98)
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
PAD, UNK, BOS, EOS = SPECIALS
SOURCE, TARGET = "en", "de"
NEVER = 1_000_000
"""Steps, or epochs, after which a toolkit may do what it shall not do while the clock runs."""

PRECISIONS = {
    "dragoman": ("float32", "bfloat16"),
    "torch": ("float32", "bfloat16"),
    "huggingface": ("float32", "bfloat16"),
    "eole": ("float32", "bfloat16"),
    "sockeye": ("float32",),
    "marian": ("float32",),
    "joeynmt": ("float32",),
}
"""What each trains in on a CPU: the names of the scripts `train_NAME.py`, in the order in which they take turns."""
TITLES = {
    "dragoman": "Dragoman",
    "torch": "`torch.nn.Transformer`, plain loop",
    "huggingface": "Hugging Face `MarianMTModel`, plain loop",
    "eole": "eole",
    "sockeye": "Sockeye",
    "marian": "Marian",
    "joeynmt": "JoeyNMT",
}
PACKAGES = {"huggingface": "transformers", "marian": "pymarian"}
"""The package of a toolkit, where it has another name."""


@dataclass(frozen=True)
class Shape:
    """A pre-norm Transformer (post-norm where a toolkit has no other) with tied embeddings, and its batches."""

    d_model: int
    d_ff: int
    num_heads: int
    num_encoder_layers: int
    num_decoder_layers: int
    batch_tokens: int
    """Positions of the longer side of a batch, pads included."""
    dropout: float = DROPOUT


SHAPES = {"small": Shape(128, 512, 4, 4, 4, batch_tokens=2048), "middle": Shape(256, 1024, 4, 3, 3, batch_tokens=4096)}


@dataclass(frozen=True)
class Corpus:
    """The folder that `prepare.py` writes: pieces separated by spaces, a sentence a line."""

    folder: Path

    def text(self, split: str, language: str) -> Path:
        """Of `train` or `valid`. JoeyNMT puts the dot and the language there by itself."""
        return self.folder / f"{split}.{language}"

    def lines(self, split: str, language: str) -> list[str]:
        return self.text(split, language).read_text(encoding="utf-8").split("\n")[:-1]

    @property
    def pieces(self) -> Path:
        """The joint vocabulary but for the specials, a piece a line, in the order of Dragoman's ids."""
        return self.folder / "pieces.txt"

    def read_pieces(self) -> list[str]:
        return self.pieces.read_text(encoding="utf-8").split("\n")[:-1]

    @property
    def batches(self) -> Path:
        """Shape -> rows of each of Dragoman's first batches."""
        return self.folder / "batches.json"


@dataclass(frozen=True)
class Options:
    """What a script was asked for."""

    name: str
    corpus: Corpus
    shape_name: str
    precision: str
    warm_up: int
    steps: int

    @property
    def shape(self) -> Shape:
        return SHAPES[self.shape_name]


def parse_options(name: str, description: str | None) -> Options:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="the folder that prepare.py has written")
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("precision", choices=PRECISIONS[name])
    parser.add_argument("--warm-up", type=int, default=10, help="steps that do not count")
    parser.add_argument("--steps", type=int, default=40)
    found = parser.parse_args()
    return Options(name, Corpus(found.corpus.resolve()), found.shape, found.precision, found.warm_up, found.steps)
