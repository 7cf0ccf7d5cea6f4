"""Clients of others, unmodified, against a live server: `make test-clients`.

    python tests/clients/run.py [NAME ...]

So are the quick starts of other toolkits (docs/coming-from). Each client has an environment of its own under
.venv-clients/. Checkouts are looked for in $DRAGOMAN_CLIENTS, or in
`clients/` beside the repository: LibreTranslate (github.com/LibreTranslate/LibreTranslate), with a pytest plugin
`libretranslate_live` that sends its tests to $LT_URL, and deepl-python (github.com/DeepLcom/deepl-python). What is not
there is told and left out; the exit code is 1 if a client failed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.serve.corrections import Correction
from dragoman.serve.store import Store

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".venv-clients"
CHECKOUTS = Path(os.environ.get("DRAGOMAN_CLIENTS", ROOT.parent / "clients"))
FIXTURE = ROOT / "tests" / "fixtures" / "run_4f9e9c2" / "finished"
QUICK_STARTS = ROOT / "tests" / "system" / "test_quick_starts.py"
EXPORTS = ROOT / "tests" / "system" / "test_export_marian.py"
BROWSER = ROOT / "tests" / "system" / "test_browser_model.py"
KEY = "mock_server"
"""The key that DeepL's own tests send to a server that is not theirs."""
PHRASES = {
    "ar": "شعاع البروتون", "bg": "протонен лъч", "cs": "protonový paprsek", "da": "protonstråle",
    "de": "Protonenstrahl", "el": "δέσμη πρωτονίων", "es": "haz de protones", "et": "prootonikiirgus",
    "fi": "protonisäde",
    "fr": "faisceau de protons", "hu": "protonnyaláb", "id": "berkas proton", "it": "fascio di protoni",
    "ja": "陽子ビーム", "ko": "양성자 빔", "lt": "protonų spindulys", "lv": "protonu staru kūlis", "nb": "protonstråle",
    "nl": "protonenbundel", "pl": "wiązka protonów", "pt": "feixe de prótons", "ro": "fascicul de protoni",
    "ru": "протонный луч", "sk": "protónový lúč", "sl": "protonski žarek", "sv": "protonstråle", "tr": "proton ışını",
    "uk": "протонний пучок", "zh": "质子束",
}  # fmt: skip
"""What "proton beam" is called: the server's phrase book, kept as corrections. Clients ask for it in every language."""
NOT_OURS = {
    "test_usage_no_response", "test_translate_too_many_requests", "test_usage_overrun",
    "test_usage_team_document_limit",
    "test_translate_document_with_manual_timeout_fails", "test_document_failure_during_translation",
    "test_translate_document_low_level", "test_translate_document_request_fields", "test_translate_with_retries",
    "test_formality", "test_translate_document_formality", "test_language", "test_text", "test_document_output_format",
    "tests/test_rephrase_text.py", "tests/test_style_rules.py", "tests/test_translation_memories.py",
}  # fmt: skip
"""Tests of deepl-python that need faults of DeepL's mock server, or parts of its API that are left out: no model here
has a formality, and a document comes back in its own format: what insists on others is refused."""


class Missing(Exception):
    """Something that a client needs is not here."""


@contextmanager
def server(folder: Path, *, key_required: bool) -> Iterator[str]:
    """A server between English and 29 languages, by a tiny model that knows none of them, and a phrase book."""
    runs = []
    for code in PHRASES:
        for src, tgt in (("en", code), (code, "en")):
            run = folder / f"{src}-{tgt}"
            shutil.copytree(FIXTURE, run)
            config = (run / "config.yaml").read_text(encoding="utf-8")
            config = config.replace("src_lang: en", f"src_lang: {src}").replace("tgt_lang: de", f"tgt_lang: {tgt}")
            (run / "config.yaml").write_text(config, encoding="utf-8")
            runs.append(str(run))
    store = Store(folder / "serve.sqlite")
    store.add_key("clients", key=KEY)
    for code, phrase in PHRASES.items():
        store.corrections.add(Correction("en", code, "proton beam", phrase))
        store.corrections.add(Correction(code, "en", phrase, "proton beam"))
    store.close()
    command = [sys.executable, "-m", "dragoman", "serve", *runs, "--port", "0", "--store", str(folder / "serve.sqlite")]
    with (folder / "said").open("w+", encoding="utf-8") as said:
        process = subprocess.Popen([*command, *(["--key-required"] if key_required else [])], stderr=said)
        try:
            yield _address(process, folder / "said")
        finally:
            process.terminate()
            process.wait(timeout=30)


def _address(process: "subprocess.Popen[bytes]", said: Path) -> str:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        text = said.read_text(encoding="utf-8")
        if process.poll() is not None:
            raise SystemExit(f"the server did not start:\n{text}")
        if found := re.search(r"http://localhost:(\d+)/", text):
            url = f"http://127.0.0.1:{found.group(1)}"
            try:
                with urllib.request.urlopen(f"{url}/ready", timeout=5):
                    return url
            except OSError:
                pass
        time.sleep(0.3)
    raise SystemExit("the server is not ready after three minutes")


def python(name: str, *packages: str) -> Path:
    """The interpreter of an environment with some packages."""
    folder = ENVIRONMENTS / name
    if not (folder / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*command, *packages]).returncode:
        raise Missing(f"{' '.join(packages)} cannot be installed")
    return folder / "bin" / "python"


def checkout(name: str) -> Path:
    if not (CHECKOUTS / name).is_dir():
        raise Missing(f"no checkout {CHECKOUTS / name}")
    return CHECKOUTS / name


def checked(command: list[str], folder: Path | None = None, **environment: str) -> None:
    subprocess.run(command, check=True, cwd=folder, env={**os.environ, **environment})


def libretranslates_own_tests(url: str, folder: Path) -> None:
    repository = checkout("LibreTranslate")
    if not (CHECKOUTS / "libretranslate_live.py").is_file():
        raise Missing(f"no {CHECKOUTS / 'libretranslate_live.py'}")
    interpreter = python("libretranslate", "pytest", "httpx")
    tests = repository / "libretranslate" / "tests" / "test_api"
    checked(
        [str(interpreter), "-m", "pytest", "-q", "-p", "libretranslate_live", "-o", "addopts=", str(tests)],
        folder, LT_URL=url, PYTHONPATH=str(CHECKOUTS),
    )  # fmt: skip


def libretranslatepy(url: str, folder: Path) -> None:
    code = f"""
from libretranslatepy import LibreTranslateAPI
api = LibreTranslateAPI({url + "/"!r}, {KEY!r})
assert api.translate("proton beam", "en", "de") == "Protonenstrahl"
assert api.detect("Der Mann schläft auf der Straße.")[0]["language"] == "de"
assert {{"en", "es"}} <= {{one["code"] for one in api.languages()}}
"""
    checked([str(python("libretranslatepy", "libretranslatepy==2.1.4")), "-c", code], folder)


def deep_translator(url: str, folder: Path) -> None:
    code = f"""
from deep_translator import LibreTranslator
one = LibreTranslator(source="en", target="de", custom_url={url + "/"!r}, api_key={KEY!r})
assert one.translate("proton beam") == "Protonenstrahl"
assert one.translate_batch(["proton beam", "proton beam"]) == ["Protonenstrahl"] * 2
"""
    checked([str(python("deep-translator", "deep-translator==1.11.4")), "-c", code], folder)


def deepl_python(url: str, folder: Path) -> None:
    repository = checkout("deepl-python")
    interpreter = python("deepl", "pytest", "pydantic<2", "requests", "click", "keyring", str(repository))
    own = folder / "deepl-python"
    shutil.copytree(repository / "tests", own / "tests")
    left_out = [word for name in sorted(NOT_OURS) for word in _left_out(name)]
    checked(
        [str(interpreter), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", *left_out],
        own, DEEPL_AUTH_KEY=KEY, DEEPL_SERVER_URL=url, DEEPL_MOCK_SERVER_PORT=url.rpartition(":")[2],
    )  # fmt: skip


def _left_out(name: str) -> list[str]:
    if name.startswith("tests/"):
        return [f"--ignore={name}"]
    files = ("test_cli.py", "test_general.py", "test_translate_document.py", "test_translate_text.py")
    return [f"--deselect=tests/{file}::{name}" for file in files]


def deepl_node(url: str, folder: Path) -> None:
    _node(
        "deepl-node@1.28.0", folder,
        f"""
import * as deepl from "deepl-node";
import assert from "assert";
import fs from "fs";
const one = new deepl.Translator({KEY!r}, {{ serverUrl: {url!r} }});
assert.equal((await one.translateText("proton beam", null, "de")).text, "Protonenstrahl");
const terms = await one.createGlossary("x", "en", "de", new deepl.GlossaryEntries({{
  entries: {{ artist: "Maler" }}
}}));
assert.equal((await one.translateText("artist", "en", "de", {{ glossary: terms }})).text, "Maler");
await one.deleteGlossary(terms);
fs.writeFileSync("a.txt", "proton beam");
await one.translateDocument("a.txt", "b.txt", "en", "de");
assert.equal(fs.readFileSync("b.txt", "utf8"), "Protonenstrahl");
const client = new deepl.DeepLClient({KEY!r}, {{ serverUrl: {url!r} }});
const dictionary = (from, to, entries) => ({{
  sourceLangCode: from, targetLangCode: to, entries: new deepl.GlossaryEntries({{ entries }})
}});
const many = await client.createMultilingualGlossary("y", [
  dictionary("en", "de", {{ artist: "Maler" }}), dictionary("en", "fr", {{ artist: "peintre" }})
]);
assert.equal(many.dictionaries.length, 2);
assert.equal((await client.translateText("artist", "en", "fr", {{ glossary: many }})).text, "peintre");
const newer = dictionary("en", "de", {{ artist: "Malerin", prize: "Preis" }});
await client.updateMultilingualGlossaryDictionary(many, newer);
await client.updateMultilingualGlossaryName(many, "z");
const kept = await client.getMultilingualGlossary(many.glossaryId);
assert.deepEqual([kept.name, kept.dictionaries.map((one) => one.entryCount).sort()], ["z", [1, 2]]);
const entries = await client.getMultilingualGlossaryDictionaryEntries(many, "en", "de");
assert.deepEqual(entries.entries.entries(), {{ artist: "Malerin", prize: "Preis" }});
await client.replaceMultilingualGlossaryDictionary(many, dictionary("en", "fr", {{ prize: "prix" }}));
await client.deleteMultilingualGlossaryDictionary(many, "en", "de");
assert.equal((await client.listMultilingualGlossaries())[0].dictionaries.length, 1);
const csv = await client.createMultilingualGlossaryWithCsv("c", "en", "de", "artist,Maler");
assert.equal(csv.dictionaries[0].entryCount, 1);
await client.deleteMultilingualGlossary(csv);
await client.deleteMultilingualGlossary(many);
""",
    )  # fmt: skip


def npm_translate(url: str, folder: Path) -> None:
    _node(
        "translate@3.1.0", folder,
        f"""
import translate from "translate";
import assert from "assert";
Object.assign(translate, {{ engine: "libre", url: {url + "/translate"!r}, key: {KEY!r} }});
assert.equal(await translate("proton beam", {{ from: "en", to: "de" }}), "Protonenstrahl");
""",
    )  # fmt: skip


def _node(package: str, folder: Path, code: str) -> None:
    if not (shutil.which("node") and shutil.which("npm")):
        raise Missing("no node and npm")
    own = folder / package.partition("@")[0]
    own.mkdir()
    (own / "package.json").write_text("{}", encoding="utf-8")
    if subprocess.run(["npm", "install", "--silent", package], cwd=own).returncode:
        raise Missing(f"{package} cannot be installed")
    (own / "run.mjs").write_text(code, encoding="utf-8")
    checked(["node", "run.mjs"], own)


def argos_translate(url: str, folder: Path) -> None:
    interpreter = python("argos", "-c", str(ROOT / "constraints.txt"), "-e", f"{ROOT}[dev]", "argostranslate")
    test = ROOT / "tests" / "system" / "test_export_argos.py"
    checked([str(interpreter), "-m", "pytest", "-q", "-m", "system or not system", str(test)], ROOT)


def marian(url: str, folder: Path) -> None:
    """Marian itself translates what was written for it; it is large, and has an environment of its own."""
    checked(
        [sys.executable, "-m", "pytest", "-q", "-m", "system", "-k", "marian_translates", str(EXPORTS)],
        ROOT, DRAGOMAN_MARIAN=str(python("marian", "pymarian==1.12.42", "numpy")),
    )  # fmt: skip


def bergamot(url: str, folder: Path) -> None:
    """The module that browsers translate with, in node and in a browser."""
    package = "@browsermt/bergamot-translator"
    own = folder / "bergamot"
    own.mkdir()
    if (
        not shutil.which("npm")
        or subprocess.run(["npm", "install", "--silent", f"{package}@0.4.9"], cwd=own).returncode
    ):
        raise Missing(f"{package} cannot be installed")
    checked(
        [sys.executable, "-m", "pytest", "-q", "-m", "system", "-k", "bergamot or browser", str(EXPORTS), str(BROWSER)],
        ROOT, DRAGOMAN_BERGAMOT=str(own / "node_modules" / package),
    )  # fmt: skip


def ray_data(url: str, folder: Path) -> None:
    interpreter = python("ray", "-c", str(ROOT / "constraints.txt"), "-e", f"{ROOT}[dev]", "ray[data]>=2.51")
    test = ROOT / "tests" / "system" / "test_bulk.py"
    checked([str(interpreter), "-m", "pytest", "-q", "-m", "system or slow", "-k", "ray", str(test)], ROOT)


def quick_start(variable: str, *packages: str, alone: str = "") -> Callable[[str, Path], None]:
    """A toolkit's own quick start, ours on what it left, and its model by CTranslate2's converter where there is one.

    `alone`: the toolkit, installed without the versions that it asks for: old ones of PyTorch and protobuf.
    """

    def client(url: str, folder: Path) -> None:
        name = variable.removeprefix("DRAGOMAN_").lower()
        interpreter = python(f"quick-start-{name}", "sacrebleu", *packages)
        if alone:
            python(f"quick-start-{name}", "--no-deps", "--no-build-isolation", alone)
        checked(
            [sys.executable, "-m", "pytest", "-q", "-m", "system", "-k", f"theirs_runs or converter or {name}",
             "--timeout", "3600", str(QUICK_STARTS)],
            ROOT, **{variable: str(interpreter)},
        )  # fmt: skip

    return client


CLIENTS: dict[str, tuple[Callable[[str, Path], None], bool]] = {
    "LibreTranslate's tests": (libretranslates_own_tests, False),
    "libretranslatepy": (libretranslatepy, True),
    "deep-translator": (deep_translator, True),
    "deepl-python": (deepl_python, True),
    "deepl-node": (deepl_node, True),
    "npm translate": (npm_translate, True),
    "Argos Translate": (argos_translate, True),
    "Marian": (marian, True),
    "bergamot-translator": (bergamot, True),
    "Ray Data": (ray_data, True),
    "JoeyNMT": (
        quick_start(
            "DRAGOMAN_JOEYNMT",
            "torch==2.13.0",
            "numpy",
            "pyyaml",
            "sentencepiece",
            "subword-nmt",
            "matplotlib",
            "tensorboard",
            "importlib-metadata",
            "packaging",
            "tqdm",
            "datasets",
            "setuptools<81",
            alone="joeynmt==2.3.0",
        ),
        True,
    ),
    "OpenNMT-py": (
        quick_start(
            "DRAGOMAN_OPENNMT",
            "torch==2.13.0",
            "ctranslate2",
            "configargparse",
            "pyonmttok",
            "pyyaml",
            "rapidfuzz",
            "six",
            "spacy",
            "pyahocorasick",
            "fasttext-wheel",
            "sentencepiece",
            "tensorboard",
            "flask",
            "waitress",
            "setuptools<81",
            alone="OpenNMT-py==3.5.1",
        ),
        True,
    ),
    "fairseq": (
        quick_start(
            "DRAGOMAN_FAIRSEQ",
            "torch==2.13.0",
            "ctranslate2",
            "numpy",
            "cython",
            "setuptools<81",
            "wheel",
            "cffi",
            "hydra-core",
            "regex",
            "tqdm",
            "bitarray",
            "omegaconf",
            "scikit-learn",
            "packaging",
            "subword-nmt",
            alone="fairseq-fixed==0.12.3.1",
        ),
        True,
    ),
    "Sockeye": (
        quick_start("DRAGOMAN_SOCKEYE", "torch==2.13.0", "numpy<2", "pyyaml", "subword-nmt", alone="sockeye==3.1.34"),
        True,
    ),
    "Marian's quick start": (
        quick_start("DRAGOMAN_MARIAN", "pymarian==1.12.42", "numpy", "ctranslate2", "pyyaml", "sentencepiece"),
        True,
    ),
    "Moses": (quick_start("DRAGOMAN_MOSES", "sacremoses"), True),
}
"""The clients by name, and whether their server asks for a key."""


def main() -> None:
    chosen = sys.argv[1:] or list(CLIENTS)
    outcomes: dict[str, str] = {}
    for key_required in (False, True):
        names = [name for name in chosen if CLIENTS[name][1] is key_required]
        if not names:
            continue
        with tempfile.TemporaryDirectory() as temporary, server(Path(temporary), key_required=key_required) as url:
            for name in names:
                print(f"=== {name}", flush=True)
                try:
                    CLIENTS[name][0](url, Path(temporary))
                    outcomes[name] = "passed"
                except Missing as error:
                    outcomes[name] = f"SKIPPED: {error}"
                except subprocess.CalledProcessError as error:
                    outcomes[name] = f"FAILED: exit code {error.returncode}"
    for name, outcome in outcomes.items():
        print(f"{name:24} {outcome}")
    sys.exit(any(outcome.startswith("FAILED") for outcome in outcomes.values()))


if __name__ == "__main__":
    main()
