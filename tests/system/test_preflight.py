"""What the plan says before the first step, held against what the run took. On a machine that does nothing else."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.runs.events import read_events

RECIPE = """
task: translation
corpus:
  src_lang: de
  tgt_lang: en
  train: {{type: demo, split: train}}
  valid: {{type: demo, split: valid}}
tokenizer: {{type: sentencepiece, algorithm: bpe, vocab_size: {vocab_size}}}
model: {{{model}, num_encoder_layers: {layers}, num_decoder_layers: {layers}, dropout: 0.1}}
training:
  max_steps: {max_steps}
  batch_tokens: {batch_tokens}
  schedule: {{type: linear, lr: 2.0e-3, warmup_steps: 50}}
  validate_every: {validate_every}
device: cpu
run_dir: run
"""
TRANSFORMER = "type: transformer, num_heads: 4, d_model: {}, d_ff: {}"
SIZES = {
    "small": {"vocab_size": 500, "model": TRANSFORMER.format(64, 128), "layers": 2, "batch_tokens": 1024,
              "max_steps": 500},
    "middle": {"vocab_size": 1000, "model": TRANSFORMER.format(128, 512), "layers": 3, "batch_tokens": 2048,
               "max_steps": 250},
    "large": {"vocab_size": 2000, "model": TRANSFORMER.format(256, 1024), "layers": 4, "batch_tokens": 4096,
              "max_steps": 80},
    "lstm": {"vocab_size": 1000, "model": "type: recurrent, d_embedding: 128, d_model: 128", "layers": 1,
             "batch_tokens": 2048, "max_steps": 150},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_plan_keeps_its_word(size: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = SIZES[size]
    recipe = RECIPE.format(**settings, validate_every=settings["max_steps"] // 2)
    (tmp_path / "recipe.yaml").write_text(recipe, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "dragoman", "train", "recipe.yaml"], cwd=tmp_path, check=True)
    events = {event["event"]: event for event in read_events(tmp_path / "run" / "metrics.jsonl")}
    plan, end = events["plan"], events["end"]
    took = {
        "seconds": (plan["estimated_s"], end["elapsed_s"]),
        "bytes": (plan["estimated_bytes"], end["peak_bytes"]),
    }
    print(
        ", ".join(f"{name}: {estimated:,.0f} estimated, {real:,.0f} taken" for name, (estimated, real) in took.items())
    )
    assert took["seconds"][0] > 0  # how near it comes is printed: another process may take what was measured
    assert took["bytes"][0] == pytest.approx(took["bytes"][1], rel=0.15)
