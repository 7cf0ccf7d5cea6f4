"""The page that explains one sentence: its numbers are those of the model, and a browser plays it."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.errors import raises_error
from tests.system.browsers import CHROMIUM

from dragoman.analysis import EXPLAIN_PAGE, ways
from dragoman.analysis.explain import explain, write_page
from dragoman.cli import main as cli
from dragoman.data.batch import collate
from dragoman.decoding.base import DecodingConfig
from dragoman.errors import Error
from dragoman.inference.loading import build_model, load_parts
from dragoman.inference.scoring import score, token_log_probs
from dragoman.inference.search_translator import SearchTranslator
from dragoman.inference.translation import Segment
from dragoman.models.families import RecurrentConfig, TransformerConfig
from dragoman.tasks import recipes
from dragoman.text.tokenizers.pair import train_tokenizers
from dragoman.text.tokenizers.sentencepiece import SentencePieceConfig
from dragoman.text.tokenizers.words import WordsConfig

RUN = Path(__file__).parents[1] / "fixtures" / "run_4f9e9c2" / "finished"
RECIPES = Path(__file__).parents[2] / "recipes"
SENTENCES = {"latin": "the red dog sees </script><b>a man", "chinese": "我 爱 你 们 吗"}
SMALL: dict[str, Any] = {"d_model": 16, "num_encoder_layers": 2, "num_decoder_layers": 2}
MODELS = {
    "transformer": TransformerConfig(**SMALL, num_heads=2, d_ff=24),
    "learned positions, post-norm": TransformerConfig(
        **SMALL, num_heads=4, d_ff=24, norm_placement="post", position={"type": "learned", "max_len": 30}
    ),
    "rotary, shared keys": TransformerConfig(
        **SMALL, num_heads=4, num_kv_heads=2, d_ff=24, position={"type": "rotary"}
    ),
    "alibi, source without its end": TransformerConfig(
        **SMALL, num_heads=2, d_ff=24, position={"type": "alibi"}, src_end=False
    ),
    "ssru": TransformerConfig(**SMALL, num_heads=2, d_ff=24, decoder_autoreg="rnn"),
    "lstm with attention": RecurrentConfig(**SMALL, d_embedding=16, attention="additive"),
    "lstm with scaled dots": RecurrentConfig(**SMALL, d_embedding=16, attention="scaled_dot"),
    "lstm": RecurrentConfig(**SMALL, d_embedding=16, attention="none"),
}
LIGHT: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"}
DARK: dict[str, Any] = {"viewport": {"width": 390, "height": 800}, "color_scheme": "dark", "has_touch": True}
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)")


def translator_of(family: str, text: str, **decoding: Any) -> SearchTranslator:
    torch.manual_seed(4)
    tokenizers = train_tokenizers(WordsConfig(), lambda: iter([text, "a few more words"]), lambda: iter(()))
    model = build_model(MODELS[family], tokenizers).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.4 * torch.randn_like(parameter))
    settings = {"beam_size": 3, "max_length_ratio": 0.0, "max_length_extra": 8, "min_length": 2, **decoding}
    return SearchTranslator(model, tokenizers, decoding=DecodingConfig(**settings))


def numbers(written: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(written["data"]), dtype="<f4").reshape(written["shape"])


def page_of(data: dict[str, Any], folder: Path) -> Path:
    write_page(data, folder / "page.html")
    return folder / "page.html"


def data_in(page: str) -> dict[str, Any]:
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    data: dict[str, Any] = json.loads(text)
    return data


def weights_of(kind: dict[str, Any]) -> np.ndarray:
    """The softmax of the masked scores, as the page computes it."""
    hidden = np.array([[one == "0" for one in row] for row in kind["mask"]])
    scores = np.where(hidden, -np.inf, numbers(kind["scores"]))
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


@pytest.mark.parametrize("script", SENTENCES)
@pytest.mark.parametrize("family", MODELS)
def test_every_number_is_that_of_a_fresh_pass(family: str, script: str, tmp_path: Path) -> None:
    one = translator_of(family, SENTENCES[script])
    data = explain(one, one.model, SENTENCES[script], "run")
    page = page_of(data, tmp_path).read_text(encoding="utf-8")
    shown = data_in(page)
    assert shown == json.loads(json.dumps(data))
    assert len(page) < 3_000_000
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)

    src_ids = one.tokenizers.src.encode(SENTENCES[script])
    best = shown["ways"][0]
    assert shown["src"]["ids"] == [*src_ids, 3]
    assert best["text"] == one.translate([SENTENCES[script]])[0]
    assert shown["beam"]["hypotheses"][0]["log_prob"] == pytest.approx(sum(best["log_probs"]), abs=1e-4)
    for way in shown["ways"]:
        tgt_ids = [index for index in way["ids"] if index != 3]
        batch = collate([(src_ids, tgt_ids)])
        tgt_in = batch.tgt_in[:, : len(way["ids"])]
        with torch.inference_mode():
            probs = one.model(batch.src, batch.src_mask, tgt_in)[0].softmax(dim=-1)
            maps = one.model.attention_maps(batch.src, batch.src_mask, tgt_in)
        maps = {name.replace("decoder.cross", "decoder.0.cross"): values for name, values in maps.items()}  # of an LSTM
        for place, (index, log_prob, following) in enumerate(
            zip(way["ids"], way["log_probs"], way["next"], strict=True)
        ):
            assert np.exp(log_prob) == pytest.approx(float(probs[place, index]), abs=1e-5)
            assert [prob for _, _, prob in following] == pytest.approx(probs[place].topk(10).values.tolist(), abs=1e-5)
        names = set()
        for kind, of_kind in {**shown["encoder"], **way["attention"]}.items():
            side, relation = kind.split(".")
            for layer, values in enumerate(weights_of(of_kind)):
                names.add(f"{side}.{layer}.{relation}")
                np.testing.assert_allclose(values, maps[f"{side}.{layer}.{relation}"][0].numpy(), atol=1e-5)
            check_cells(of_kind)
        assert names == maps.keys()
    assert (shown["positions"] is None) == (family.split(",")[0] in ("rotary", "alibi") or family.startswith("lstm"))
    assert ("numbers" in shown["cache"]) == (family.startswith("lstm") or family == "ssru")
    if family == "transformer":
        expected = one.model.src_embedding.positions(0, len(src_ids) + 1)  # type: ignore[union-attr, operator]
        np.testing.assert_allclose(numbers(shown["positions"]), expected.numpy(), atol=1e-6)
        assert shown["masks"][0]["masks"]["causal"][0][:2] == [1, 0]
        assert any(row["name"] == "logits" for row in shown["trace"])


def check_cells(kind: dict[str, Any]) -> None:
    """Queries and keys make the scores: q · k times the scale and the bias, or v · tanh(W s + U h)."""
    query, key, scores = (numbers(kind[name]) for name in ("query", "key", "scores"))
    key = np.repeat(key, query.shape[1] // key.shape[1], axis=1)
    if kind["formula"] == "dot":
        made = query @ np.swapaxes(key, -1, -2) * kind["scale"]
        made = made + numbers(kind["bias"]) if "bias" in kind else made
    else:
        made = np.tanh(query[..., :, None, :] + key[..., None, :, :]) @ np.array(kind["v"])
    assert kind["width"] == query.shape[-1]
    np.testing.assert_allclose(made, scores, atol=1e-4)


@pytest.mark.parametrize("family", ["transformer", "lstm with attention"])
def test_other_ways_begin_with_a_choice_go_on_greedily_and_are_as_probable_as_score_says(family: str) -> None:
    one = translator_of(family, SENTENCES["latin"])
    best, *others = explain(one, one.model, SENTENCES["latin"], "run")["ways"]
    src_ids = one.tokenizers.src.encode(SENTENCES["latin"])
    greedy = one.with_decoding(beam_size=1)
    forks = set()
    for way in others:
        place = next(n for n, (a, b) in enumerate(zip(way["ids"], best["ids"], strict=False)) if a != b)
        forks.add((place, way["ids"][place]))
        assert way["ids"][place] in [index for index, _, _ in best["next"][place][:3]]
        if way["ids"][place] != 3:
            [[hypothesis]] = greedy.hypotheses([Segment(src_ids, way["ids"][: place + 1])])
            assert way["ids"] == hypothesis.ids + [3] * (not hypothesis.cut)
    expected = {
        (place, index)
        for place, following in enumerate(best["next"])
        for index, _, _ in following[:3]
        if index != best["ids"][place] and index not in (0, 1, 2) and not (index == 3 and place < 2)
    }
    assert forks == expected
    for way in (best, *others):
        ids = [index for index in way["ids"] if index != 3]
        [values] = token_log_probs(one, [(src_ids, ids)])
        assert way["log_probs"] == pytest.approx(values[: len(way["ids"])], abs=1e-5)


def test_the_page_stays_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ways behind the bound have no maps, and of many those that begin most probably are kept (jessevig/bertviz#82)."""
    one = translator_of("transformer", SENTENCES["latin"])
    every = explain(one, one.model, SENTENCES["latin"], "run")["ways"][1:]
    monkeypatch.setattr(ways, "MAX_WAYS", 4)
    monkeypatch.setattr(ways, "MAX_MAP_CHARACTERS", len(json.dumps(every[0]["attention"])) + 1)
    data = explain(one, one.model, SENTENCES["latin"], "run")
    assert [way["ids"] for way in data["ways"][1:]] == [way["ids"] for way in every[:4]]
    assert [bool(way["attention"]) for way in data["ways"]] == [True, True, False, False, False]


def test_the_command_and_what_it_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["dragoman", "explain", str(RUN), *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out + printed.err

    code, printed = command("the dog sees a man", "-o", str(tmp_path / "dog.html"), "--beam-size", "2")
    assert (code, printed.strip().splitlines()[-1]) == (0, str(tmp_path / "dog.html"))
    assert command("x", "-o", "page.txt")[0] == 2
    assert command(" ", "-o", str(tmp_path / "blank.html"))[0] == 2
    with raises_error(Error.TOO_LONG):
        explain(SearchTranslator.load(RUN, device="cpu"), load_parts(RUN, "best").model, "dog " * 90, "run")


# --- in a browser ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """`open_page(address, own, **form)`: a page without an error, which asks nobody but `own`."""
    problems: list[str] = []
    contexts: list[Any] = []

    def is_bad(line: Any) -> bool:
        return line.type == "error" and not line.text.startswith("Failed to load resource")  # refused, as asked for

    def opened(address: Path | str, own: str = "file:", **form: Any) -> Any:
        contexts.append(browser.new_context(**{**LIGHT, "locale": "en-GB", **form}))
        page = contexts[-1].new_page()
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda line: problems.append(line.text) if is_bad(line) else None)
        page.on("request", lambda sent: None if sent.url.startswith(own) else problems.append(sent.url))
        page.goto(address.as_uri() if isinstance(address, Path) else address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def number(text: str) -> float:
    return float(text.replace("−", "-"))


@needs_browser
@pytest.mark.parametrize("family", MODELS)
def test_the_player_shows_what_there_is_of_each_family(
    family: str, tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    one = translator_of(family, SENTENCES["latin"])
    data = explain(one, one.model, SENTENCES["latin"], "run")
    best = data["ways"][0]
    for form in (LIGHT, DARK):
        page = open_page(page_of(data, tmp_path), **form)
        assert page.inner_text("#title") == SENTENCES["latin"]
        assert page.locator("#inputs .chip").all_inner_texts() == ["<s>\n2"]
        assert not page.locator("#next button").first.is_visible()  # nothing is computed yet
        assert page.locator("#layers .layer").count() == len(data["layers"])
        parts = len(data["layers"]) + 2
        for place in range(len(best["ids"])):
            page.focus("#player")
            page.keyboard.press("PageDown")
            assert page.input_value("#frame") == str((place + 1) * parts - 1)
            assert page.locator("#inputs .chip").count() == place + 1
            assert page.locator("#next .taken").get_attribute("data-id") == str(best["ids"][place])
            for map in ("mask", "self", "cross"):
                if page.locator(f"#{map}").count():
                    assert page.locator(f"#{map} tbody tr").count() == place + 1
            if data["cache"]["kind"] == "keys and values":
                assert page.locator("#cache thead th").count() == place + 1
                assert page.locator("#cache td:text-is('kv')").count() == (place + 1) * data["cache"]["layers"]
        assert best["text"] in page.inner_text("#falls")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        assert (page.input_value("#frame"), page.locator(".layer.on").count()) == ("1", 1)
        page.keyboard.press("ArrowLeft")
        assert page.input_value("#frame") == "0"
        assert (page.locator("#no-mask").count() == 1) == (family.startswith("lstm") or family == "ssru")
        assert (page.locator("#no-attention").count() == 1) == (family == "lstm")
        assert page.locator("#attention").count() == (family != "lstm")
        page.locator("#beam-step").fill(str(len(data["beam"]["steps"])))
        assert "what becomes of it" in page.inner_text("#beam")
        length = len(best["ids"])
        assert page.locator("#tree line.wins").count() == length
        # Only what scrolls by itself may be wider than the screen.
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@needs_browser
def test_it_plays_and_pauses(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    one = translator_of("transformer", SENTENCES["latin"])
    page = open_page(page_of(explain(one, one.model, SENTENCES["latin"], "run"), tmp_path))
    page.focus("#player")
    page.keyboard.press(" ")
    page.wait_for_selector("#where:text-matches('layer 2')")
    page.click("#play")
    assert page.inner_text("#play") == "▶"
    before = page.input_value("#frame")
    page.wait_for_timeout(1_300)
    assert page.input_value("#frame") == before


@needs_browser
def test_a_choice_goes_on_and_both_ways_stand_side_by_side(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    one = translator_of("transformer", SENTENCES["latin"])
    data = explain(one, one.model, SENTENCES["latin"], "run")
    page = open_page(page_of(data, tmp_path))
    page.click("#next-token")
    chosen = next(way for way in data["ways"][1:] if way["ids"][0] != data["ways"][0]["ids"][0])
    assert page.locator("#next button:not(:disabled)").count() >= 2
    assert page.locator("#next [data-id='0']").count() == 0 or page.locator("#next [data-id='0']").is_disabled()
    page.click(f"#next [data-id='{chosen['ids'][0]}']")
    for column, way in enumerate((data["ways"][0], chosen)):
        rows = page.locator("#two-ways tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(c => c.innerText))"
        )
        lines = [row[1 + 2 * column : 3 + 2 * column] for row in rows[2:-2]]
        lines = [line for line in lines if line[0]]
        assert [line[0] for line in lines] == way["pieces"]
        assert [number(line[1]) for line in lines] == pytest.approx(way["log_probs"], abs=1e-4)
        assert number(rows[-2][1 + column]) == pytest.approx(sum(way["log_probs"]), abs=1e-4)
        assert number(rows[-1][1 + column]) == pytest.approx(np.mean(way["log_probs"]), abs=1e-4)
    page.click("#own-way")
    assert page.locator("#two-ways").count() == 0


@needs_browser
@pytest.mark.parametrize("family", ["transformer", "lstm with attention", "alibi, source without its end"])
def test_the_numbers_behind_a_cell_are_the_model_s(family: str, tmp_path: Path, open_page: Callable[..., Any]) -> None:
    one = translator_of(family, SENTENCES["latin"])
    data = explain(one, one.model, SENTENCES["latin"], "run")
    best = data["ways"][0]
    batch = collate([(data["src"]["ids"][:-1], [index for index in best["ids"] if index != 3])])
    with torch.inference_mode():
        maps = one.model.attention_maps(batch.src, batch.src_mask, batch.tgt_in[:, : len(best["ids"])])
    name = "decoder.cross" if family.startswith("lstm") else "decoder.1.cross"
    page = open_page(page_of(data, tmp_path), **DARK)
    layer, head = (0, 0) if family.startswith("lstm") else (1, 1)
    for id, number_of in (("kindLayer", layer), ("kindHead", head)):
        if number_of:  # a recurrent decoder has one layer of attention, and one head
            page.locator(f"#{id}").fill(str(number_of))
    page.click("#attention-map td[data-at='2 1']")
    rows = page.locator("#row tr").evaluate_all(
        "rows => rows.slice(1).map(row => [...row.cells].map(c => c.innerText))"
    )
    assert [number(row[-1]) for row in rows] == pytest.approx(maps[name][0, head, 2].tolist(), abs=1e-5)
    kind = best["attention"]["decoder.cross"]
    assert [number(row[1]) for row in rows] == pytest.approx(numbers(kind["scores"])[layer, head, 2].tolist(), abs=1e-4)
    assert rows[-1][2:4] == (["0", "−∞"] if "without" in family else ["1", rows[-1][1]])
    shown = number(re.findall(r"−?\d+\.\d{4}", page.inner_text("#sum"))[-1])
    assert shown == pytest.approx(float(numbers(kind["scores"])[layer, head, 2, 1]), abs=1e-4)
    page.focus("#attention-map table")
    page.keyboard.press("ArrowDown")
    assert "position 3" in page.inner_text("#numbers h3")


@needs_browser
def test_chinese_is_the_same_page(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    one = translator_of("transformer", SENTENCES["chinese"])
    page = open_page(page_of(explain(one, one.model, SENTENCES["chinese"], "run"), tmp_path), locale="zh-CN")
    for term in ("注意力", "掩码", "束搜索", "键", "缓存", "对数概率", "请留意"):
        assert term in page.inner_text("#explained")
    page.click("#languages button:text-is('English')")
    assert page.get_attribute("#explained", "lang") == "en"
    assert "Causal mask" in page.inner_text("#player")


def test_every_text_of_the_page_is_there_in_chinese() -> None:
    script, _, zh = (path.read_text("utf-8") for path in EXPLAIN_PAGE)
    texts = {json.loads(f'"{text}"') for text in re.findall(r'\bt\(\s*"((?:[^"\\]|\\.)*)"', script)}
    texts |= set(re.findall(r'"(?:encoder|decoder)\.\w+": "([^"]+)"', script))
    texts |= {"masked self-attention", "attention to the source", "feed-forward", "readout", "sinusoidal", "learned"}
    texts |= {"padding", "causal", "padding & causal"}
    chinese = json.loads(zh)
    assert texts == chinese.keys()
    for text, translation in chinese.items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", translation)), text
        assert translation != text or text == "{n} of {all}"


STRANGE = {
    "markup (huggingface/tokenizers#1937)": "a<b<c & </script><img src=x onerror=alert(1)>",
    "quotes (jessevig/bertviz#7)": 'It\'s "so" `called` \\n {{ data }}',
    "words again (fossasia/visdom#680)": "the man the man the man the",
    "spaces at the ends (inseq-team/inseq#246)": "  the  man ",
    "from right to left (jonorthwash/ud-annotatrix#70)": "ئەم دەرمانە رۆژانە دەخۆم",
    "long words alike (OpenNMT/OpenNMT-py#629)": f"{'officialregistration' * 3}a {'officialregistration' * 3}b",
    "long (jessevig/bertviz#82)": "the man sees a dog " * 16,
}


@needs_browser
@pytest.mark.parametrize("report", STRANGE)
def test_what_broke_other_pages_is_shown_as_it_is(report: str, tmp_path: Path, open_page: Callable[..., Any]) -> None:
    sentence = STRANGE[report]
    one = translator_of("transformer", sentence)
    data = explain(one, one.model, sentence, "run")
    assert report.startswith("long") or len(json.dumps(data)) < 2_000_000
    page = open_page(page_of(data, tmp_path), **DARK)
    page.click("#next-token")
    for id, pieces in (("src", data["src"]["pieces"]), ("tgt", data["ways"][0]["pieces"])):
        assert page.locator(f"#{id} bdi").all_text_contents() == pieces
    kind = data["encoder"]["encoder.self"]
    page.select_option("#kind", "encoder.self")
    assert page.locator("#attention-map tbody tr").count() == len(kind["queries"])  # none is merged with its like
    titles = page.locator("#attention-map tbody th").evaluate_all("cells => cells.map(cell => cell.title)")
    assert titles == [f"{piece} ({place})" for place, piece in enumerate(kind["queries"])]
    boxes = [page.locator("#src .chip").nth(n).bounding_box() for n in (0, 1)]
    assert (boxes[0]["x"] > boxes[1]["x"]) == ("right to left" in report)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@needs_browser
def test_a_token_that_is_not_the_most_probable_says_why(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    """poloclub/transformer-explainer#29: the reader takes it for a mistake. bojieli/ai-agent-book#346: rows of the
    attention to the source are named by the token that comes out."""
    one = translator_of("transformer", SENTENCES["latin"], min_length=0)
    data = explain(one, one.model, SENTENCES["latin"], "run")
    best = data["ways"][0]
    page = open_page(page_of(data, tmp_path))
    for following, index in zip(best["next"], best["ids"], strict=True):
        page.click("#next-token")
        remark = "not the most probable" in page.inner_text("#falls")
        assert remark == (following[0][0] != index)
    assert page.locator("#cross tbody th").all_text_contents() == best["pieces"]
    assert page.locator("#self tbody th").all_text_contents() == best["inputs"]


def test_a_character_of_several_pieces_is_no_broken_text(tmp_path: Path) -> None:
    """jalammar/ecco#51, huggingface/tokenizers#508: pieces of a character were shown as if they were text."""
    torch.manual_seed(4)
    config = SentencePieceConfig(vocab_size=290, byte_fallback=True)
    lines = ["the man sees a dog and the dog sees a man"] * 5
    tokenizers = train_tokenizers(config, lambda: iter(lines), lambda: iter(()))
    one = SearchTranslator(build_model(MODELS["transformer"], tokenizers).eval(), tokenizers, decoding=DecodingConfig())
    src_ids, ids = tokenizers.src.encode("the man"), tokenizers.tgt.encode("a 😀 dog")
    assert len(ids) > len("a 😀 dog".replace(" ", ""))
    made = ways.way(one, one.model, src_ids, ids, is_cut=False)
    assert made["so_far"][-1] == "a 😀 dog"
    assert not any("\ufffd" in text for text in made["so_far"])


@needs_browser
@pytest.mark.parametrize("form", [LIGHT, DARK], ids=["light", "dark"])
def test_nothing_is_in_the_way_of_anybody(form: dict[str, Any], tmp_path: Path, open_page: Callable[..., Any]) -> None:
    """huggingface/huggingface_hub#523: a labelled token could not be read in dark mode."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="accessibility needs axe-playwright-python"
    )
    one = translator_of("transformer", SENTENCES["latin"])
    page = open_page(page_of(explain(one, one.model, SENTENCES["latin"], "run"), tmp_path), **form)
    page.click("#next-token")
    page.locator("#next button:not(:disabled):not(.taken)").first.click()
    page.locator("#kindHead").fill("0")
    page.click("#attention-map td[data-at='1 1']")
    judged = axe.Axe().run(page)
    assert judged.violations_count == 0, judged.generate_report()


# --- the book's sentence, and a server -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def beer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("beer") / "run"
    recipes.run_to_end(recipes.load(RECIPES / "toy-beer.yaml", [f"run_dir={run}"]))
    return run


def test_the_book_s_sentence_has_the_book_s_ids_with_and_without_dots(beer: Path) -> None:
    one, model = SearchTranslator.load(beer, device="cpu"), load_parts(beer, "best").model
    for sentence in ("ich möchte ein bier", "ich mochte ein bier"):
        data = explain(one, model, sentence, "beer")
        assert data["src"]["ids"] == [4, 5, 6, 7, 3]
        assert data["src"]["pieces"] == ["ich", "möchte", "ein", "bier", "</s>"]
        assert (data["ways"][0]["ids"], data["ways"][0]["text"]) == ([4, 5, 6, 7, 3], "i want a beer")
        whole = [way for way in data["ways"] if way["ids"][-1] == 3 and len(way["ids"]) > 1]
        assert len(whole) > 3
        for way, judged in zip(whole, score(one, [(sentence, way["text"]) for way in whole]), strict=True):
            assert [value for _, value in judged.tokens] == pytest.approx(way["log_probs"], abs=1e-5)
            assert judged.log_prob == pytest.approx(sum(way["log_probs"]), abs=1e-5)


@needs_browser
def test_a_server_explains_what_is_typed_and_any_choice(
    beer: Path, tmp_path: Path, live_server: Any, open_page: Callable[..., Any]
) -> None:
    with live_server(tmp_path, runs=(beer,)) as server:
        offline = explain(
            SearchTranslator.load(beer, device="cpu"), load_parts(beer, "best").model, "ich mochte ein bier", "run"
        )
        pair = {"source": "de", "target": "en", "text": "ich mochte ein bier"}
        served = server.post("/v1/explain", json=pair).json()
        assert served["ways"][0]["text"] == "i want a beer"
        check_same(served, {**offline, "ways": offline["ways"][:1], "run": "run"})
        for way in offline["ways"][1:4]:
            place = next(n for n, index in enumerate(way["ids"]) if index != offline["ways"][0]["ids"][n])
            check_same(server.post("/v1/explain/way", json={**pair, "begin": way["ids"][: place + 1]}).json(), way)

        page = open_page(f"{server.url}/explain", own=server.url)
        page.fill("#sentence", "ich mochte ein bier")
        page.click("#ask button")
        page.wait_for_selector("#player")
        page.click("#next-token")
        page.click("#next [data-id='7']")  # beer: not among the best three
        page.wait_for_selector("#two-ways")
        page.click("#next-token")
        page.click("#next [data-id='7']")  # and again, two choices deep
        page.wait_for_selector("#falls:text-matches('beer beer')")
        rows = page.locator("#two-ways tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(c => c.innerText))"
        )
        text = rows[1][2]
        [judged] = score(SearchTranslator.load(beer, device="cpu"), [("ich mochte ein bier", text)])
        assert number(rows[-2][2]) == pytest.approx(judged.log_prob, abs=1e-3)
        page.fill("#sentence", "ein bier")
        page.keyboard.press("Enter")
        page.wait_for_selector("#title:text-is('ein bier')")
        page.fill("#sentence", "bier " * 90)
        page.keyboard.press("Enter")
        page.wait_for_selector("#problem:not([hidden])")
        assert "90 tokens" in page.inner_text("#problem")
        assert (
            server.client.get(f"{server.url}/explain")
            .headers["content-security-policy"]
            .startswith("default-src 'none'")
        )


def check_same(one: Any, other: Any) -> None:
    """The same data, floats nearly so; a field that is None may be left out."""
    if isinstance(other, dict):
        one, other = ({name: value for name, value in each.items() if value is not None} for each in (one, other))
        assert one.keys() == other.keys()
        if other.keys() == {"shape", "data"}:
            np.testing.assert_allclose(numbers(one), numbers(other), atol=1e-5)
            return
        for name in other:
            check_same(one[name], other[name])
    elif isinstance(other, list | tuple):
        assert len(one) == len(other)
        for each, its in zip(one, other, strict=True):
            check_same(each, its)
    elif isinstance(other, float):
        assert one == pytest.approx(other, abs=1e-4)
    else:
        assert one == other
