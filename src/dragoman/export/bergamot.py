"""A run for browsers: what bergamot-translator runs there, as Firefox does, without a network.

A folder holds the model in 8 bits (`model.ende.intgemm8.bin`; in float32 without `--quantize int8`), the vocabularies,
with `--shortlist` the pieces that a source may need (`lex.ende.bin`), `config.yml`, and `registry.json`, by which the
package finds the files of a page's own server. It is Marian's own implementation `transformer`, so a recipe has to
train what that holds (`recipes/browser.yaml`).

What is quantised there is weights and, sentence by sentence, activations; embeddings are turned back into numbers.
"""

import hashlib
import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import yaml

from dragoman.decoding.base import DecodingConfig
from dragoman.errors import Error
from dragoman.export import marian, marian_format, marian_weights
from dragoman.export.origin import write_origin
from dragoman.export.shortlist import learnt
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Translation
from dragoman.languages.codes import language_of
from dragoman.models.transformer import Transformer
from dragoman.runs import atomic_io
from dragoman.special_tokens import EOS_ID, SPECIALS
from dragoman.text.tokenizers.sentencepiece_model import with_fillers
from dragoman.version import __version__

CONFIG, REGISTRY = "config.yml", "registry.json"
PACKAGE = "DRAGOMAN_BERGAMOT"
"""Environment variable: the folder of the npm package `@browsermt/bergamot-translator`."""
NEVER_BIAS = -100.0
"""The output bias of an entry that is never generated."""
MAX_BYTES = 16 * 2**30
INNER_MULTIPLE, OUTER_MULTIPLE = 64, 8
"""Sizes that 8-bit products have to be a multiple of: what is summed over, and what comes out."""


def problems(translator: SearchTranslator) -> list[str]:
    """Why a browser cannot run this translator: a line for each reason, with what to change; none: it can."""
    reasons = marian.problems(translator, (marian_weights.OLD,))
    model = translator.model
    if reasons or not isinstance(model, Transformer):
        return reasons
    if not all(side.cut for side in marian.vocabularies(translator)):
        reasons.append("tokenizer: SentencePiece alone cuts a text in a browser: train with {type: sentencepiece}")
    layer = model.encoder_layers[0]
    for name, size in (
        ("d_model", layer.self_attention.query_proj.in_features),
        ("d_ff", cast(Any, layer.feed_forward).expand.out_features),
    ):
        if size % INNER_MULTIPLE:
            reasons.append(f"model.{name}: {size} is no multiple of {INNER_MULTIPLE}, as 8-bit products there need it")
    return reasons


def nearest(decoding: DecodingConfig) -> DecodingConfig:
    """The search of applications for browsers, whatever a model says: greedily, to twice the source's length."""
    return replace(marian.nearest(decoding), beam_size=1, n_best=1, max_length_ratio=2.0)


def write(translator: SearchTranslator, folder: Path, quantize: str | None = None) -> None:
    """Write the model, vocabularies and configuration into an empty folder.

    Raises DragomanError for another `quantize` than int8.
    """
    if quantize not in (None, "int8"):
        raise Error.UNKNOWN_NAME(f"`quantize` {quantize}: browsers compute in int8, or in float32 without it")
    model = cast(Transformer, translator.model)
    src, tgt = marian.vocabularies(translator)
    pair = "".join(language_of(one) for one in translator.languages or ("", ""))
    arrays = marian_weights.arrays(model, marian_weights.OLD, (src.rows, tgt.rows), 0)
    arrays = {name: _filled_up(name, values) for name, values in arrays.items()}
    items: dict[str, np.ndarray | marian_format.Quantised] = {
        name: marian_format.quantise(values) if quantize and is_quantised(name) else values
        for name, values in arrays.items()
    }
    sizes = (len(src.rows) + fillers(src), len(tgt.rows) + fillers(tgt))
    options = marian_weights.options(model, marian_weights.OLD, sizes, f"v1.9.56 Dragoman {__version__}")
    name = f"model.{pair}.intgemm8.bin" if quantize else f"model.{pair}.bin"
    marian_format.write_bin(folder / name, items, options)
    vocabularies = [f"vocab.{pair}.spm"] if src is tgt else [f"srcvocab.{pair}.spm", f"trgvocab.{pair}.spm"]
    for vocabulary, side in zip(vocabularies, (src, tgt), strict=False):
        atomic_io.replace_bytes(folder / vocabulary, with_fillers(side.content, fillers(side)))
    settings = {
        "relative-paths": True,
        "models": [name],
        "vocabs": [vocabularies[0], vocabularies[-1]],
        **marian.search_settings(nearest(translator.decoding)),
        "max-length-break": translator.max_src_tokens,
        "mini-batch-words": 1024,
        "workspace": 128,
        "skip-cost": True,
        "cpu-threads": 0,
        "quiet": True,
        "quiet-translation": True,
        "alignment": "soft",
        "gemm-precision": "int8shiftAll" if quantize else "float32",
    }
    _write_settings(folder, settings)
    write_origin(translator, folder)


def _write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write `config.yml`, and the registry: the files that it names, and what the package does not say by itself."""
    atomic_io.replace_text(folder / CONFIG, yaml.safe_dump(settings, sort_keys=False))
    [model], vocabularies = settings["models"], list(dict.fromkeys(settings["vocabs"]))
    pair = model.split(".")[1]
    if len(pair) != 4:  # the package reads two letters of each language
        return
    parts = dict(zip(("srcvocab", "trgvocab") if len(vocabularies) > 1 else ("vocab",), vocabularies, strict=True))
    names = {"model": model, **parts} | ({"lex": settings["shortlist"][0]} if "shortlist" in settings else {})
    contents = {part: (name, atomic_io.read_bytes(folder / name, MAX_BYTES)) for part, name in names.items()}
    files: dict[str, Any] = {
        part: {"name": name, "size": len(content), "expectedSha256Hash": hashlib.sha256(content).hexdigest()}
        for part, (name, content) in contents.items()
    }
    files["config"] = {name: settings[name] for name in ("beam-size", "normalize", "word-penalty", "gemm-precision")}
    atomic_io.replace_text(folder / REGISTRY, json.dumps({pair: files}, indent=1) + "\n")


def fillers(side: marian.Side) -> int:
    """Entries that a vocabulary lacks: products of 8-bit matrices have a multiple of 8 columns."""
    return -len(side.rows) % OUTER_MULTIPLE


def _filled_up(name: str, values: np.ndarray) -> np.ndarray:
    """A matrix or bias with a place for each entry of a vocabulary, with rows for the fillers, which are never said."""
    if "Wemb" in name or name.endswith("_Wt"):
        return np.pad(values, ((0, -len(values) % OUTER_MULTIPLE), (0, 0)))
    if name.endswith("logit_out_b"):
        return np.pad(values, ((0, 0), (0, -values.shape[1] % OUTER_MULTIPLE)), constant_values=NEVER_BIAS)
    return values


def is_quantised(name: str) -> bool:
    """True for the matrices that are in 8 bits there; `_Wt`, an output of its own, is quantised when it is loaded."""
    return "Wemb" in name or name[-3:-1] == "_W" or name[-2:] == "_W"


def write_shortlist(prepared: Path, folder: Path, translator: SearchTranslator) -> None:
    """Write the binary shortlist, learnt from the training pairs that a run keeps as ids in `prepared`, and name it in
    the configuration."""
    always, likely = learnt(prepared, translator.tokenizers)
    src, tgt = marian.vocabularies(translator)
    place = {index: row for row, index in enumerate(tgt.rows)}
    lists: list[list[int]] = [
        # The end of a sentence is in every source: its list holds what every translation may need.
        sorted({place[one] for one in (*likely.get(index, ()), *(always if index == EOS_ID else ())) if one in place})
        for index in src.rows
    ]
    lists += [[]] * fillers(src)
    settings = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    name = settings["models"][0].replace("model.", "lex.").replace(".intgemm8", "")
    marian_format.write_lexicon(folder / name, lists, len(SPECIALS))
    _write_settings(folder, {**settings, "shortlist": [name, False]})


# -- translating ---------------------------------------------------------------------------------------------------


def load(folder: Path, translator: SearchTranslator) -> marian.MarianEngine:
    """The written model in WebAssembly, run by node. Of `translator`, only how it cuts, joins and limits is asked."""

    def run(texts: Sequence[str], widths: Sequence[int]) -> list[list[Translation]]:
        return [[Translation(text, 0.0, 0.0)] for text in translations(folder, texts, widths)]

    return marian.MarianEngine(translator, run, scored=False)


def translations(folder: Path, texts: Sequence[str], widths: Sequence[int]) -> list[str]:
    """The translations of texts by the package that browsers have. `widths`: as `marian.pymarian`.

    Raises DragomanError where node or the package is not there, or it complains.
    """
    package = Path(os.environ.get(PACKAGE, f"node_modules/{NPM}"))
    if not (package / "worker").is_dir():
        raise Error.NOT_INSTALLED(f"{package}: no {NPM}", f"npm install {NPM}, and name its folder in {PACKAGE}")
    settings = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    lexicon = settings.pop("shortlist", [None])[0]
    files = {
        "model": settings.pop("models")[0],
        "shortlist": lexicon,
        "vocabs": list(dict.fromkeys(settings.pop("vocabs"))),
    }
    settings |= {"ssplit-mode": "sentence"}
    groups = marian.by_width(widths)
    given = {
        "package": str(package.resolve()),
        "folder": str(folder.resolve()),
        **files,
        "config": yaml.safe_dump(settings),
        "groups": [[texts[number] for number in numbers] for numbers in groups],
    }
    try:
        done = subprocess.run(["node", "-e", WORKER], input=json.dumps(given), capture_output=True, encoding="utf-8")
    except OSError as error:
        raise Error.NOT_INSTALLED(f"node cannot be run: {error}", "install Node.js") from error
    if done.returncode or not done.stdout:
        message = " ".join((done.stdout + done.stderr).split())[-400:]
        raise Error.EXTERNAL_FAILED(f"bergamot-translator: {message}")
    results = [""] * len(texts)
    for numbers, group in zip(groups, json.loads(done.stdout.rpartition("\n")[2]), strict=True):
        for number, text in zip(numbers, group, strict=True):
            results[number] = text
    return results


NPM = "@browsermt/bergamot-translator"
WORKER = """
const fs = require('fs'), given = JSON.parse(fs.readFileSync(0, 'utf8'));
const worker = given.package + '/worker/bergamot-translator-worker';
const memory = (name, alignment) => {
  const bytes = name === null ? Buffer.alloc(0) : fs.readFileSync(given.folder + '/' + name);
  const place = new Module.AlignedMemory(bytes.byteLength, alignment);
  place.getByteArrayView().set(bytes);
  return place;
};
// Products of 8-bit matrices are Firefox's own there; the module has them too, under names of another style.
const fallback = name => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase()) + 'Fallback';
global.Module = {
  instantiateWasm: (info, accept) => {
    const binary = new WebAssembly.Module(fs.readFileSync(worker + '.wasm'));
    const needed = WebAssembly.Module.imports(binary).filter(one => one.module === 'wasm_gemm');
    const products = needed.map(({name}) => [name, (...values) => Module.asm[fallback(name)](...values)]);
    const imports = {...info, wasm_gemm: Object.fromEntries(products)};
    WebAssembly.instantiate(binary, imports).then(instance => accept(instance));
    return {};
  },
  onRuntimeInitialized: () => {
    const service = new Module.BlockingService({cacheSize: 0});
    const vocabularies = new Module.AlignedMemoryList();
    for (const name of given.vocabs) vocabularies.push_back(memory(name, 64));
    const model = new Module.TranslationModel(
      given.config, memory(given.model, 256), memory(given.shortlist, 64), vocabularies, null);
    const found = given.groups.map(texts => {
      const input = new Module.VectorString(), options = new Module.VectorResponseOptions();
      for (const text of texts) {
        input.push_back(text);
        options.push_back({qualityScores: false, alignment: false, html: false});
      }
      const output = service.translate(model, input, options);
      return texts.map((text, number) => output.get(number).getTranslatedText());
    });
    process.stdout.write('\\n' + JSON.stringify(found));
  }
};
eval.call(global, fs.readFileSync(worker + '.js', 'utf8'));
"""
"""The script that node runs. It translates texts of one length together, each as one sentence."""
