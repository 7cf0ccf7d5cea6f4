"""Marian's own search: what runs in pymarian's environment while `benchmarks/translation.py` holds the clock.

    ENVS/marian/bin/python translate_marian.py --config EXPORT/decoder.yml --beam-size 5 --cpu-threads 2 --quiet

EXPORT is a folder of `dragoman export RUN EXPORT --to marian`; the options are those of `marian-decoder`. Each line of
stdin is an object in JSON: `sentences`, and options for these (`mini-batch`). The answer is a line with their
translations, the processor seconds that they took in all threads of this process, and pymarian's version.
"""

import json
import shlex
import sys
import time

import pymarian


def main() -> None:
    translator = pymarian.Translator(shlex.join(sys.argv[1:]))
    for line in sys.stdin:
        options = json.loads(line)
        sentences = options.pop("sentences")
        before = time.process_time()
        translations = translator.translate(sentences, **options) if sentences else []
        answer = {"translations": translations, "cpu_seconds": time.process_time() - before}
        print(json.dumps({**answer, "version": pymarian.__version__}), flush=True)


if __name__ == "__main__":
    main()
