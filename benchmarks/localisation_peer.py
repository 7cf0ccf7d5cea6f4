"""A peer for the localisation benchmark: Hugging Face's Marian classes, tags in the text as tokens.

    python benchmarks/localisation_peer.py FOLDER MINUTES|STEPSsteps SEED OUT.de [float32|bfloat16]

That is how markup is usually kept by toolkits that do not know of it: the model learns to write the tags. FOLDER has
train.markup.en.gz and so on; the best weights by validation loss translate test.markup.en.gz. Needs transformers.
"""

import gzip
import io
import re
import sys
import time
from collections import Counter
from pathlib import Path

import sentencepiece as spm
import torch
from transformers import MarianConfig, MarianMTModel

PAD, UNK, BOS, EOS = range(4)
BATCH_TOKENS = 2048
VOCAB = 8000
MAX_TOKENS = 256
WARMUP = 1000
RATE = 3e-3


def read(folder: Path, split: str, language: str) -> list[str]:
    with gzip.open(folder / f"{split}.markup.{language}.gz", "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def tokenizer(lines: list[str]) -> spm.SentencePieceProcessor:
    counts = Counter(tag for line in lines for tag in re.findall(r"<[^<>]*>", line))
    tags = [tag for tag, count in counts.most_common(60) if count > 20]
    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, model_type="bpe", vocab_size=VOCAB,
        user_defined_symbols=tags, pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS, character_coverage=1.0,
        minloglevel=2,
    )  # fmt: skip
    return spm.SentencePieceProcessor(model_proto=model.getvalue())


def batches(pairs: list[tuple[list[int], list[int]]], generator: torch.Generator) -> list[list[int]]:
    """Rows of about equal lengths, in random order."""
    noise = torch.rand(len(pairs), generator=generator).tolist()
    order = sorted(range(len(pairs)), key=lambda row: (max(map(len, pairs[row])), noise[row]))
    made: list[list[int]] = [[]]
    widest = 0
    for row in order:
        widest = max(widest, *map(len, pairs[row])) + 1
        if made[-1] and widest * (len(made[-1]) + 1) > BATCH_TOKENS:
            made.append([])
            widest = max(map(len, pairs[row])) + 1
        made[-1].append(row)
        widest -= 1
    return [made[place] for place in torch.randperm(len(made), generator=generator).tolist()]


def padded(rows: list[list[int]]) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


def loss_of(model: MarianMTModel, pairs: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, int]:
    src = padded([[*src, EOS] for src, _ in pairs])
    tgt_in, tgt_out = padded([[BOS, *tgt] for _, tgt in pairs]), padded([[*tgt, EOS] for _, tgt in pairs])
    with torch.autocast("cpu", torch.bfloat16, enabled=sys.argv[5:] == ["bfloat16"]):
        logits = model(input_ids=src, attention_mask=(src != PAD).long(), decoder_input_ids=tgt_in).logits
    loss = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, 1), tgt_out.flatten(), ignore_index=PAD, reduction="sum",
        label_smoothing=0.1 if model.training else 0.0,
    )  # fmt: skip
    return loss, int((tgt_out != PAD).sum())


def main() -> None:
    folder, seed, out = Path(sys.argv[1]), int(sys.argv[3]), Path(sys.argv[4])
    by_steps = sys.argv[2].endswith("steps")  # as many as a quiet machine took, on one that is not
    minutes, max_steps = (1e9, int(sys.argv[2][:-5])) if by_steps else (float(sys.argv[2]), 10**9)
    started = time.monotonic()
    torch.manual_seed(seed)
    texts = {split: (read(folder, split, "en"), read(folder, split, "de")) for split in ("train", "valid", "test")}
    pieces = tokenizer([*texts["train"][0], *texts["train"][1]])

    def encoded(split: str) -> list[tuple[list[int], list[int]]]:
        pairs = list(zip(*(pieces.encode(side) for side in texts[split]), strict=True))
        return [pair for pair in pairs if min(map(len, pair)) > 0 and max(map(len, pair)) <= MAX_TOKENS]

    train, valid = encoded("train"), encoded("valid")
    shape = {"d_model": 128, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 4}
    shape |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512}
    model = MarianMTModel(MarianConfig(
        vocab_size=pieces.get_piece_size(), decoder_vocab_size=pieces.get_piece_size(), dropout=0.2,
        attention_dropout=0.0, activation_dropout=0.0, activation_function="relu", scale_embedding=True,
        max_position_embeddings=MAX_TOKENS + 2, share_encoder_decoder_embeddings=True, tie_word_embeddings=True,
        pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, decoder_start_token_id=BOS, forced_eos_token_id=None,
        **shape,
    ))  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARMUP, (WARMUP / (step + 1)) ** 0.5)
    )
    generator = torch.Generator().manual_seed(seed)
    best, kept = float("inf"), model.state_dict()
    steps = epoch = 0
    deadline = started + 60 * minutes
    while time.monotonic() < deadline and steps < max_steps:
        model.train()
        for rows in batches(train, generator):
            loss, tokens = loss_of(model, [train[row] for row in rows])
            optimizer.zero_grad()
            (loss / tokens).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            steps += 1
            if time.monotonic() > deadline or steps == max_steps:
                break
        epoch += 1
        model.eval()
        with torch.inference_mode():
            sums = [loss_of(model, [valid[row] for row in rows]) for rows in batches(valid, generator)]
        score = float(sum(loss for loss, _ in sums)) / sum(tokens for _, tokens in sums)
        print(
            f"epoch {epoch}, step {steps}, {time.monotonic() - started:.0f} s: validation loss {score:.3f}", flush=True
        )
        if score < best:
            best, kept = score, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    model.eval()
    with out.open("w", encoding="utf-8") as file, torch.inference_mode():
        lines = texts["test"][0]
        found: dict[int, str] = {}
        order = sorted(range(len(lines)), key=lambda row: len(lines[row]))
        for start in range(0, len(order), 32):
            rows = order[start : start + 32]
            src = padded([[*pieces.encode(lines[row])[: MAX_TOKENS - 1], EOS] for row in rows])
            made = model.generate(
                input_ids=src,
                attention_mask=(src != PAD).long(),
                num_beams=5,
                max_length=MAX_TOKENS,
                length_penalty=1.0,
            )
            for row, ids in zip(rows, made.tolist(), strict=True):
                found[row] = pieces.decode([index for index in ids if index not in (PAD, BOS, EOS)])
        file.writelines(found[row] + "\n" for row in range(len(lines)))
    print(f"{steps} steps, {sum(p.numel() for p in model.parameters()):,} parameters, best validation loss {best:.3f}")


if __name__ == "__main__":
    main()
