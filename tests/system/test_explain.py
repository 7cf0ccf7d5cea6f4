"""The page that explains one sentence: its numbers are those of a fresh pass, and a browser shows them."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error
from tests.system.browsers import CHROMIUM

from dragoman.analysis.explain import explain, write_page
from dragoman.cli import main as cli
from dragoman.data.batch import collate
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import Error
from dragoman.inference.loading import build_model, load_parts
from dragoman.inference.search_translator import SearchTranslator
from dragoman.models.families import RecurrentConfig, TransformerConfig
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.words import WordsConfig

RUN = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
SENTENCES = {"latin": "the red dog sees </script><b>a man", "chinese": "我 爱 你 们 吗"}
SMALL: dict[str, Any] = {"d_model": 16, "num_encoder_layers": 2, "num_decoder_layers": 2}
MODELS = {
    "transformer": TransformerConfig(**SMALL, num_heads=2, d_ff=24),
    "learned positions, post-norm": TransformerConfig(
        **SMALL, num_heads=4, d_ff=24, norm_placement="post", position={"type": "learned", "max_len": 30}
    ),
    "rotary": TransformerConfig(**SMALL, num_heads=2, d_ff=24, position={"type": "rotary"}),
    "lstm with attention": RecurrentConfig(**SMALL, d_embedding=16, attention="additive"),
    "lstm": RecurrentConfig(**SMALL, d_embedding=16, attention="none"),
}


def translator_of(family: str, text: str) -> SearchTranslator:
    torch.manual_seed(4)
    tokenizers = train_tokenizers(WordsConfig(), lambda: iter([text, "a few more words"]), lambda: iter(()))
    model = build_model(MODELS[family], tokenizers).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    decoding = DecodingConfig(beam_size=3, max_length_ratio=0.0, max_length_extra=8, min_length=2)
    return SearchTranslator(model, tokenizers, decoding=decoding)


def numbers(found: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(found["data"]), dtype="<f4").reshape(found["shape"])


@pytest.mark.parametrize("script", SENTENCES)
@pytest.mark.parametrize("family", MODELS)
def test_every_number_is_that_of_a_fresh_pass(family: str, script: str, tmp_path: Path) -> None:
    one = translator_of(family, SENTENCES[script])
    data = explain(one, one.model, SENTENCES[script], "run")
    write_page(data, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[0])
    assert shown == json.loads(json.dumps(data))
    assert len(page) < 3_000_000
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)

    src_ids = one.tokenizers.src.encode(SENTENCES[script])
    tgt_ids = [index for index in shown["tgt"]["ids"] if index != 3]
    assert shown["src"]["ids"] == [*src_ids, 3]
    assert shown["tgt"]["text"] == one.translate([SENTENCES[script]])[0]
    batch = collate([(src_ids, tgt_ids)])
    tgt_in = batch.tgt_in[:, : len(shown["tgt"]["ids"])]
    with torch.inference_mode():
        probs = one.model(batch.src, batch.src_mask, tgt_in)[0].softmax(dim=-1)
        maps = one.model.attention_maps(batch.src, batch.src_mask, tgt_in)
        maps = {name.replace("decoder.cross", "decoder.0.cross"): values for name, values in maps.items()}  # of an LSTM
    assert len(shown["generation"]) == len(shown["tgt"]["ids"])
    for place, step in enumerate(shown["generation"]):
        assert step["prob"] == pytest.approx(float(probs[place, batch.tgt_out[0, place]]), abs=1e-5)
        best = probs[place].topk(min(10, probs.size(1)))
        assert [prob for _, prob in step["next"]] == pytest.approx(best.values.tolist(), abs=1e-5)
        assert len(step["prefix"]) == place + 1
    found = {}
    for kind, of_kind in shown["attention"].items():
        side, relation = kind.split(".")
        found |= {f"{side}.{layer}.{relation}": values for layer, values in enumerate(numbers(of_kind))}
    assert found.keys() == maps.keys()
    for name, values in maps.items():
        np.testing.assert_allclose(found[name], values[0].numpy(), atol=1e-5)
    said = sum(np.log(step["prob"]) for step in shown["generation"])
    assert shown["beam"]["found"][0]["log_prob"] == pytest.approx(said, abs=1e-4)
    if family == "transformer":
        expected = one.model.src_embedding.positions(0, len(src_ids) + 1)  # type: ignore[union-attr, operator]
        np.testing.assert_allclose(numbers(shown["positions"]), expected.numpy(), atol=1e-6)
        assert shown["masks"][0]["masks"]["causal"][0][:2] == [1, 0]
        assert any(row["name"] == "logits" for row in shown["trace"])
    assert (shown["positions"] is None) == (family in ("rotary", "lstm", "lstm with attention"))
    assert ("numbers" in shown["cache"]) == family.startswith("lstm")


def test_the_command_and_what_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["dragoman", "explain", str(RUN), *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        told = capsys.readouterr()
        return int(stopped.value.code or 0), told.out + told.err

    code, told = command("the dog sees a man", "-o", str(tmp_path / "dog.html"), "--beam-size", "2")
    assert (code, told.strip().splitlines()[-1]) == (0, str(tmp_path / "dog.html"))
    assert command("x", "-o", "page.txt")[0] == 2
    assert command(" ", "-o", str(tmp_path / "blank.html"))[0] == 2
    with raises_error(Error.TOO_LONG):
        explain(SearchTranslator.load(RUN, device="cpu"), load_parts(RUN, "best").model, "dog " * 90, "run")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")
@pytest.mark.parametrize("family", MODELS)
def test_a_browser_shows_it_without_an_error(family: str, tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
    one = translator_of(family, SENTENCES["latin"])
    data = explain(one, one.model, SENTENCES["latin"], "run")
    write_page(data, tmp_path / "page.html")
    problems: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for options in (
            {"viewport": {"width": 1200, "height": 800}, "color_scheme": "light"},
            {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark", "has_touch": True},
        ):
            page = browser.new_context(**options).new_page()
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
            page.on("request", lambda asked: problems.append(asked.url) if asked.url.startswith("http") else None)
            page.goto((tmp_path / "page.html").as_uri())
            assert page.inner_text("#title") == SENTENCES["latin"]
            last = len(data["generation"])
            page.locator("#step").fill(str(last))
            assert page.inner_text("#step-number") == f"{last} of {last}"
            assert page.locator("#next .bar").count() == len(data["generation"][-1]["next"])
            page.locator("#beam-step").fill(str(len(data["beam"]["steps"])))
            assert "what becomes of it" in page.inner_text("#beam")
            assert page.locator("#tree svg").count() == 1
            if data["attention"]:
                page.locator("#cross-tgt button").nth(1).focus()
                shares = [float(text.split()[0]) for text in page.locator("#cross-src small").all_inner_texts()]
                assert sum(shares) == pytest.approx(100, abs=0.6)
            else:
                assert page.locator("#attention-section").count() == 0
            # Only what scrolls by itself may be wider than the screen.
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        browser.close()
    assert problems == []
