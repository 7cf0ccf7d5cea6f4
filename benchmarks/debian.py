"""The worth of each ingredient of the recipe for Debian's translations: variants of it, trained in equal minutes.

    python benchmarks/debian.py list                                        # the variants
    python benchmarks/debian.py sizes --minutes 120                         # what --budget takes for the corpus here
    python benchmarks/debian.py run recipe --minutes 20
    python benchmarks/debian.py run bpe-dropout --minutes 20 --pair en-eu --seed 2 training.label_smoothing=0.2
    python benchmarks/debian.py run huggingface --minutes 20 --python ENVS/huggingface/bin/python
    python benchmarks/debian.py table                                       # of runs/debian.jsonl

The corpus is $DRAGOMAN_DATA/debian-PAIR (docs/debian.md), the recipe is recipes/debian-PAIR.yaml, or another
(--recipe). Each run trains the recipe with one difference, on the same clock (`peers/processor_time.py`), and is scored
on the recipe's tests, as far as they are there, with a beam of 5. The minutes hold all that Dragoman does: the
tokenizer, validations, the search for leaks and the translation of the tests. Those of a peer hold its steps alone.

`scores`, `distillation` and `teacher` need the recipe's own run, which is trained first where it is not there. Runs lie
in $DRAGOMAN_DATA/debian-runs, or another folder (--work).
"""

import argparse
import os
from pathlib import Path

from peers.processor_time import start_clock

RESULTS = Path(__file__).parent / "runs" / "debian.jsonl"
DATA = Path(os.environ.get("DRAGOMAN_DATA", "data"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table", "sizes", "list"])
    parser.add_argument("name", nargs="?", default="recipe", help="of the variant")
    parser.add_argument("changes", nargs="*", metavar="key=value", help="further settings of the recipe")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pair", default="en-de")
    parser.add_argument("--corpus", type=Path, help="the folder that `dragoman data debian` wrote")
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--sizes", choices=["recipe", "budget"], default="recipe", help="budget: what --budget takes")
    parser.add_argument("--share", type=float, default=0.1, help="of the pairs that `scores` leaves out")
    parser.add_argument("--work", type=Path, default=DATA / "debian-runs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--python", help="interpreter of the peer's environment")
    parser.add_argument("--peer-rate", type=float, help="the peer's learning rate [default: the recipe's]")
    parser.add_argument("--peer-average", type=float, default=0.0, help="decay of an average of the peer's weights")
    arguments = parser.parse_intermixed_args()
    start_clock(arguments.threads)
    arguments.environment = dict(os.environ)  # for a peer: Dragoman changes its own
    import debian_runs  # not before: Dragoman keeps the clock that is there when it is imported

    debian_runs.COMMANDS[arguments.what](arguments)


if __name__ == "__main__":
    main()
