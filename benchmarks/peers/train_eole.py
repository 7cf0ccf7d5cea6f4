"""eole's own training loop on its own batches.

eole ends targets with </s>, but not sources: here these have one written into their text.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from clock import StepClock
from eole import trainer
from eole.bin.main import main as eole
from task import (
    BETAS,
    BOS,
    CLIP_NORM,
    EOS,
    LABEL_SMOOTHING,
    LEARNING_RATE,
    NEVER,
    SOURCE,
    TARGET,
    UNK,
    Options,
    parse_options,
)

BLANK = "<blank>"
"""What eole calls a pad."""
BUCKET = 30_000
"""Sentences that are sorted by length at a time: the whole corpus."""


def settings(options: Options, folder: Path) -> dict[str, Any]:
    shape, corpus = options.shape, options.corpus
    assert shape.num_encoder_layers == shape.num_decoder_layers, "one number for both"
    vocabulary = folder / "vocabulary.txt"
    pieces = [UNK, BLANK, BOS, EOS, *corpus.read_pieces()]
    vocabulary.write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")

    def pairs(split: str) -> dict[str, Any]:
        source = folder / f"{split}.{SOURCE}"
        source.write_text("".join(f"{line} {EOS}\n" for line in corpus.lines(split, SOURCE)), encoding="utf-8")
        return {"path_src": str(source), "path_tgt": str(corpus.text(split, TARGET)), "transforms": []}

    return {
        "seed": 1,
        "share_vocab": True,
        "src_vocab": str(vocabulary),
        "tgt_vocab": str(vocabulary),
        "src_vocab_size": len(pieces),
        "tgt_vocab_size": len(pieces),
        "vocab_size_multiple": 1,
        "unk_token": UNK,
        "pad_token": BLANK,
        "bos_token": BOS,
        "eos_token": EOS,
        "save_data": str(folder / "data"),
        "overwrite": True,
        "n_sample": 0,
        "report_every": 100,
        "transforms": [],
        "transforms_configs": {},
        "data": {"corpus": pairs("train"), "valid": pairs("valid")},
        "model": {
            "architecture": "transformer",
            "layers": shape.num_encoder_layers,
            "hidden_size": shape.d_model,
            "heads": shape.num_heads,
            "transformer_ff": shape.d_ff,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "add_qkvbias": True,
            "add_final_linear_bias": True,  # by itself the encoder's would follow add_qkvbias in part only
            "add_ffnbias": True,
            "embeddings": {
                "word_vec_size": shape.d_model,
                "position_encoding": True,
                "position_encoding_type": "SinusoidalInterleaved",
            },
        },
        "training": {
            "world_size": 0,
            "gpu_ranks": [],
            "num_workers": 0,
            "compute_dtype": {"float32": "fp32", "bfloat16": "bf16"}[options.precision],
            "use_amp": options.precision == "bfloat16",
            "bucket_size": BUCKET,
            "batch_type": "tokens",
            "batch_size": shape.batch_tokens,
            "batch_size_multiple": 1,
            "normalization": "tokens",
            "accum_count": [1],
            "accum_steps": [0],
            "optim": "adam",
            "adam_beta1": BETAS[0],
            "adam_beta2": BETAS[1],
            "learning_rate": LEARNING_RATE,
            "decay_method": "none",
            "max_grad_norm": CLIP_NORM,
            "dropout": [shape.dropout],
            "attention_dropout": [0.0],
            "dropout_steps": [0],
            "label_smoothing": LABEL_SMOOTHING,
            "param_init_method": "xavier_uniform",
            "log_attention_entropy": False,  # a diagnosis that is on by itself and costs time
            "train_steps": NEVER,
            "valid_steps": NEVER,
            "save_checkpoint_steps": 0,
            "model_path": str(folder / "model"),
        },
    }


def main() -> None:
    options = parse_options("eole", __doc__)
    clock, process_batch = StepClock(options, "eole"), trainer.BatchProcessor.process_batch

    def timed_batch(processor: trainer.BatchProcessor, batch: dict[str, Any], *others: Any, **named: Any) -> bool:
        # The target begins with <s>, which is read and never predicted.
        clock.step(processor.model, batch["src"], batch["tgt"][:, 1:], processor.train_loss.padding_idx)
        return process_batch(processor, batch, *others, **named)

    trainer.BatchProcessor.process_batch = timed_batch
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(yaml.safe_dump(settings(options, Path(folder)), sort_keys=False), encoding="utf-8")
        sys.argv = ["eole", "train", "-config", str(config)]
        eole()


if __name__ == "__main__":
    main()
