"""Hand-made mistakes, one at a time, and whether the tests see them.

    python tests/mutations.py [NUMBER ...]

Each row of `MUTATIONS` replaces one text of the source by a wrong one, in a copy of the checkout. Then the tests that
should see it are run, those of `make test` first; where none fails, all of `make test`, and then those of
`make test-system`. Printed is a line for each, and at the end how many each layer has seen. `tests/unit/test_mutations.py`
holds that every text is still there, exactly once.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = "src/dragoman"

NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.egg-info")
COPIED = ("src", "tests", "docs", "recipes", "benchmarks", "speedrun")
"""Folders of the checkout, beside the files that lie in it."""

MODELS = ["contracts/test_models.py", "unit/test_transformer.py", "unit/test_blocks.py", "unit/test_kv_cache.py"]
SEARCH = ["unit/test_search.py", "unit/test_batch_invariance.py", "unit/test_continuous_batching.py"]
TESTS: dict[str, list[str]] = {
    "data/batch.py": ["unit/test_batch.py", "unit/test_batch_invariance.py", "unit/test_doctests.py"],
    "data/row_order.py": ["unit/test_batching.py", "unit/test_row_order.py"],
    "data/eval_batches.py": ["unit/test_batching.py", "unit/test_batch_invariance.py", "unit/test_doctests.py"],
    "data/batching.py": ["unit/test_batching.py", "unit/test_batch_invariance.py", "unit/test_doctests.py"],
    "nn/attention.py": ["unit/test_attention.py", "unit/test_kv_cache.py", *MODELS],
    "nn/masks.py": ["unit/test_inspect_masks.py", "unit/test_doctests.py", "unit/test_attention.py", *MODELS],
    "nn/positions.py": ["unit/test_positions.py", "unit/test_doctests.py", "unit/test_attention.py"],
    "nn/residual.py": MODELS,
    "nn/feedforward.py": MODELS,
    "nn/embeddings.py": MODELS,
    "nn/recurrent_attention.py": ["unit/test_recurrent.py", "contracts/test_models.py"],
    "models/transformer.py": MODELS,
    "decoding/beam.py": SEARCH,
    "decoding/greedy.py": SEARCH,
    "decoding/base.py": SEARCH,
    "decoding/penalties.py": ["unit/test_search.py", "unit/test_doctests.py"],
    "decoding/rules.py": ["unit/test_search.py"],
    "decoding/filters.py": ["unit/test_generate.py", "unit/test_sample_search.py", "unit/test_doctests.py"],
    "training/schedules.py": ["unit/test_schedules.py"],
    "training/loss.py": ["unit/test_loss.py", "unit/test_accelerate.py", "unit/test_r_drop.py"],
    "training/ema.py": ["unit/test_ema.py", "unit/test_loop.py"],
    "training/step.py": ["unit/test_loop.py", "golden/test_golden.py"],
    "training/loop.py": ["unit/test_loop.py"],
    "training/summation.py": ["unit/test_distributed.py"],
    "training/distributed.py": ["unit/test_distributed.py"],
    "training/recovery.py": ["unit/test_loop.py", "unit/test_earlier_run.py"],
    "training/state.py": ["unit/test_loop.py", "unit/test_earlier_run.py"],
    "training/nonfinite.py": ["unit/test_loop.py"],
    "backends/fused_attention.py": [
        "unit/test_attention.py",
        "unit/test_accelerate.py",
        "unit/test_batch_invariance.py",
    ],
    "backends/byte_dropout.py": ["unit/test_dropout.py"],
    "backends/chunked_loss.py": ["unit/test_loss.py", "unit/test_accelerate.py", "unit/test_distillation.py"],
    "backends/accelerate.py": ["unit/test_accelerate.py"],
    "runs/atomic_io.py": ["unit/test_checkpoint.py", "promises/test_promises.py"],
    "runs/checkpoint.py": ["unit/test_checkpoint.py"],
    "runs/log.py": ["unit/test_run_log.py"],
    "runs/lock.py": ["unit/test_lock.py"],
    "text/lines.py": ["unit/test_corpus.py", "unit/test_tools_translate.py", "unit/test_hostile_files.py"],
    "text/sources/files.py": ["unit/test_corpus.py"],
    "inference/search_translator.py": [
        "unit/test_translator.py",
        "unit/test_batch_invariance.py",
        "unit/test_banned_phrases.py",
        "unit/test_reranking.py",
    ],
    "inference/scoring.py": ["unit/test_translator.py"],
    "inference/long_input.py": ["unit/test_translator.py", "unit/test_doctests.py"],
    "inference/loading.py": ["unit/test_translator.py", "unit/test_ensemble.py", "unit/test_guarded.py"],
    "text/placeholders.py": ["unit/test_placeholders.py", "unit/test_guarded.py"],
    "export/verify.py": [],
    "export/huggingface_weights.py": [],
    "importing/base.py": [],
    "importing/ctranslate2.py": [],
    "importing/huggingface.py": [],
    "text/tokenizers/language_tags.py": [],
    "text/tokenizers/sentencepiece_model.py": ["unit/test_sentencepiece_model.py"],
    "alignment/lexicon.py": [],
    "inference/watched_search.py": ["unit/test_watched_search.py"],
    "experiments/vocabulary.py": [],
}
SYSTEM: dict[str, list[str]] = {
    "export/verify.py": ["system/test_export_verify.py"],
    "export/huggingface_weights.py": ["system/test_import_huggingface.py"],
    "importing/base.py": ["system/test_import_huggingface.py", "system/test_import_ctranslate2.py"],
    "importing/ctranslate2.py": ["system/test_import_ctranslate2.py"],
    "importing/huggingface.py": ["system/test_import_huggingface.py"],
    "text/tokenizers/language_tags.py": ["system/test_import_huggingface.py"],
    "alignment/lexicon.py": ["system/test_distil.py"],
    "experiments/vocabulary.py": ["system/test_vocabulary.py"],
    "runs/atomic_io.py": ["system/test_crash_points.py"],
    "runs/checkpoint.py": ["system/test_crash_points.py", "system/test_killed.py"],
}


class Mutation(NamedTuple):
    """A wrong text in the place of a right one."""

    path: str
    right: str
    wrong: str


MUTATIONS = [
    Mutation(*row)
    for row in (
        ("data/batch.py", "tgt_in[:, 0] = BOS_ID", "tgt_in[:, 0] = EOS_ID"),
        ("data/batch.py", "tgt_in[:, 1:][real] = flat", "tgt_in[:, :-1][real] = flat"),
        ("data/batch.py", "real.sum(axis=1)] = EOS_ID", "real.sum(axis=1)] = BOS_ID"),
        ("data/batch.py", "mask[:, 1:] = real  #", "mask[:, :-1] = real  #"),
        ("data/batch.py", "extra = -src.size(1) % multiple", "extra = 0"),
        ("data/batch.py", "longest + 1 - src.size(1)", "longest - src.size(1)"),
        ("data/batch.py", "num_tokens=int(tgt_mask.sum())", "num_tokens=int(tgt_mask.numel())"),
        (
            "data/row_order.py",
            "return np.maximum(self.src, self.tgt) + 1\n",
            "return np.maximum(self.src, self.tgt)\n",
        ),
        ("data/batching.py", "-(-self.num_batches // self.micro_batches)", "self.num_batches // self.micro_batches"),
        ("data/batching.py", "words = raw_words(self.seed, epoch)", "words = raw_words(self.seed, 0)"),
        ("data/batching.py", "(step + 1) * self.micro_batches]", "(step + 1) * self.micro_batches - 1]"),
        ("data/eval_batches.py", "rows = np.flatnonzero(widths == width)", "rows = np.flatnonzero(widths >= width)"),
        (
            "data/row_order.py",
            "if (needed := int(widths[group])) > batch_tokens:",
            "if (needed := int(widths[group])) > 2 * batch_tokens:",
        ),
        ("nn/attention.py", "/ math.sqrt(query.size(-1))  #", "/ query.size(-1)  #"),
        ("nn/attention.py", "scores.masked_fill(~mask, -math.inf)", "scores.masked_fill(~mask, -1.0)"),
        ("nn/attention.py", "heads.repeat_interleave(groups, dim=1)", "heads.repeat(1, groups, 1, 1)"),
        ("nn/attention.py", "weights = scores.softmax(dim=-1)", "weights = scores.softmax(dim=-2)"),
        ("nn/attention.py", "torch.cat([self.key, new.key], dim=2)", "torch.cat([new.key, self.key], dim=2)"),
        (
            "nn/attention.py",
            "heads = self.positions.rotate(self.split_heads(query), start)",
            "heads = self.positions.rotate(self.split_heads(query), 0)",
        ),
        (
            "nn/attention.py",
            "self.value_proj = nn.Linear(d_model, num_kv_heads * self.d_head)",
            "self.value_proj = self.key_proj",
        ),
        ("nn/masks.py", "device=device).tril()[None, None]", "device=device).triu()[None, None]"),
        ("nn/masks.py", ".tril()[None, None]", ".tril(1)[None, None]"),
        ("nn/positions.py", "torch.stack([angles.sin(), angles.cos()]", "torch.stack([angles.cos(), angles.sin()]"),
        ("nn/positions.py", "(-math.log(base) / spread)", "(-math.log(base) / (2 * spread))"),
        ("nn/positions.py", "real * sin + imaginary * cos]", "real * sin - imaginary * cos]"),
        ("nn/positions.py", "distance = (query[:, None] - key).abs()", "distance = query[:, None] - key"),
        ("nn/positions.py", "2 ** (-8 * (i + 1) / power)", "2 ** (-8 * i / power)"),
        ("nn/positions.py", "return table[start : start + length]", "return table[:length]"),
        ("nn/positions.py", "if start + length > self.max_len:", "if length > self.max_len:"),
        (
            "nn/residual.py",
            "return self.norm(x + self.dropout(sublayer(x)))",
            "return self.norm(self.dropout(sublayer(x)))",
        ),
        ("nn/residual.py", "return x + self.dropout(sublayer(self.norm(x)))", "return x + self.dropout(sublayer(x))"),
        ("nn/feedforward.py", "F.silu(self.gate(x)) * self.expand(x)", "F.silu(self.expand(x)) * self.gate(x)"),
        ("nn/embeddings.py", "math.sqrt(d_model) if scaled else 1.0", "float(d_model) if scaled else 1.0"),
        (
            "nn/recurrent_attention.py",
            "masked_fill(~padding_mask[:, None, :], -math.inf)",
            "masked_fill(padding_mask[:, None, :], -math.inf)",
        ),
        ("nn/recurrent_attention.py", "self.scale = d_model**-0.5", "self.scale = 1.0"),
        ("nn/recurrent_attention.py", "hidden.tanh()", "hidden.relu()"),
        (
            "models/transformer.py",
            "x = layer(x, causal_mask, memory.hidden, memory_mask, maps)",
            "x = layer(x, causal_mask, memory.hidden, None, maps)",
        ),
        ("models/transformer.py", "start=state.past[0].length)", "start=0)"),
        (
            "models/transformer.py",
            "TransformerMemory(self.encoder_norm(x), src_mask)",
            "TransformerMemory(x, src_mask)",
        ),
        ("decoding/beam.py", "order // k, ids=", "order % k, ids="),
        ("decoding/beam.py", "(ranked.log_probs[:, :beam] > -math.inf)", "(ranked.log_probs[:, :beam] > -1.0)"),
        (
            "decoding/beam.py",
            "return finished_scores[:, -1] >= best_still_possible",
            "return finished_scores[:, 0] >= best_still_possible",
        ),
        ("decoding/beam.py", "beams.log_probs.amax(dim=1) / longest_divisor", "beams.log_probs.amax(dim=1)"),
        ("decoding/beam.py", "totals - diversity * siblings", "totals + diversity * siblings"),
        ("decoding/beam.py", "best_tokens(logits, beam + 1, banned", "best_tokens(logits, 1, banned"),
        (
            "decoding/beam.py",
            "parents = first_rows[:, None] + chosen.places",
            "parents = first_rows[:, None] + 0 * chosen.places",
        ),
        ("decoding/greedy.py", "log_probs = log_probs + step_log_probs[:, 0]", "log_probs = step_log_probs[:, 0]"),
        ("decoding/greedy.py", "| (max_lengths <= length)", "| (max_lengths < length)"),
        ("decoding/greedy.py", "(log_probs / divisor[length])", "(log_probs / divisor[0])"),
        ("decoding/base.py", "if length <= config.min_length else []", "if length < config.min_length else []"),
        ("decoding/base.py", "ban(log_probs, banned)\n", "pass\n"),
        ("decoding/penalties.py", "((5 + length) / 6) ** self.alpha", "((5 + length) / 6) * self.alpha"),
        ("decoding/penalties.py", "return float(length**self.alpha)", "return float((length + 1) ** self.alpha)"),
        ("decoding/rules.py", "if length < size:", "if length <= size + 1:"),
        ("decoding/rules.py", "place = step.prefixes.size(1) - 1", "place = step.prefixes.size(1)"),
        ("decoding/filters.py", "ordered.cumsum(dim=-1) - ordered < p", "ordered.cumsum(dim=-1) < p"),
        ("decoding/filters.py", "stable=True).indices[:, :k]", "stable=True).indices[:, : k + 1]"),
        ("decoding/filters.py", "keepdim=True)) / temperature", "keepdim=True)) * temperature"),
        ("decoding/filters.py", "key=np.array([seed, row]", "key=np.array([seed, 0]"),
        ("training/schedules.py", "step * self.warmup_steps**-1.5", "step * self.warmup_steps**-0.5"),
        ("training/schedules.py", "math.sqrt(self.warmup_steps / step)", "self.warmup_steps / step"),
        ("training/loss.py", "label_smoothing=label_smoothing)\n", "label_smoothing=0.0)\n"),
        ("training/loss.py", "return (1.0 - weight) * loss", "return loss"),
        ("training/loss.py", "real = tgt_mask.flatten()", "real = torch.ones_like(tgt_mask).flatten()"),
        (
            "training/step.py",
            "norm = torch.nn.utils.get_total_norm(gradients) / count",
            "norm = torch.nn.utils.get_total_norm(gradients)",
        ),
        ("training/step.py", 'f"{seed}/{step}/{micro_batch}"', 'f"{seed}/{step}"'),
        ("training/step.py", "seed_for(self.seed, step, number + part * self.config.micro_batches)\n", "pass\n"),
        ("training/step.py", "clamp(max=1.0)", "clamp(min=1.0)"),
        (
            "training/step.py",
            "sums.tokens + tokens, sums.processed + processed",
            "tokens, sums.processed + processed",
        ),
        ("training/summation.py", "while number & 1:", "while False:"),
        ("training/summation.py", "self.processed += other.processed", "pass"),
        ("training/distributed.py", "partner = self.rank ^ distance", "partner = self.rank"),
        ("training/loop.py", "self.state.bad_validations += 1", "self.state.bad_validations += 0"),
        (
            "training/loop.py",
            "better = rank(result.ranked_by) > rank(self.state.best)",
            "better = rank(result.ranked_by) >= rank(self.state.best)",
        ),
        ("training/state.py", 'schedule.load_state_dict(values["schedule"])\n', "pass\n"),
        ("training/state.py", 'window.load_state_dict(values["window"])\n', "pass\n"),
        ("training/recovery.py", 'self.averager.load(checkpoint.load_group(path, "averaged"))', "pass"),
        (
            "training/recovery.py",
            "self.state.rollbacks, self.elapsed_before, self.started = before + 1,",
            "self.state.rollbacks, self.elapsed_before, self.started = before,",
        ),
        ("training/nonfinite.py", "if not math.isfinite(value):", "if math.isnan(value):"),
        ("backends/fused_attention.py", "return query.size(2) < 64", "return False"),
        (
            "backends/fused_attention.py",
            "mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)",
            "mask = bias",
        ),
        ("backends/byte_dropout.py", "256 / (256 - dropped)", "1.0"),
        ("backends/chunked_loss.py", "everywhere / logits.size(1)", "everywhere"),
        ("backends/chunked_loss.py", "real * -at_target", "real * at_target"),
        ("backends/accelerate.py", "twins[Dropout] = ByteDropout\n", "pass\n"),
        ("runs/atomic_io.py", "sync(partial)\n", "pass\n"),
        ("runs/atomic_io.py", "if len(data) > limit:", "if len(data) > 2 * limit:"),
        ("runs/checkpoint.py", "*_best_first(run_dir)[:keep_best]}", "}"),
        ("runs/checkpoint.py", "if step_of(path) > step:", "if step_of(path) >= step:"),
        ("runs/log.py", 'if event["event"] != kind]', "]"),
        ("training/ema.py", "list(self.current.values()), 1.0 - decay)", "list(self.current.values()), decay)"),
        ("training/ema.py", "min(self.decay, (1 + step) / (10 + step))\n", "self.decay\n"),
        ("runs/lock.py", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH | fcntl.LOCK_NB"),
        ("text/sources/files.py", "[line - (text is None) + sum", "[line + sum"),
        ("text/lines.py", '.removesuffix("\\n").removesuffix("\\r")', '.removesuffix("\\n")'),
        ("text/lines.py", 'yield text.removeprefix("\\ufeff") if number == 1 else text', "yield text"),
        ("text/lines.py", "while len(chunk) < size and not waiting():", "while len(chunk) < size:"),
        ("inference/search_translator.py", "if len(ids) <= self.max_src_tokens:", "if True:"),
        (
            "inference/search_translator.py",
            "return [best[: self.decoding.n_best] for best in reranked]",
            "return list(reranked)",
        ),
        ("text/placeholders.py", "return Counter(spans(src)) == Counter(spans(translation))", "return True"),
        ("export/verify.py", "lost = not ours - theirs <= MAX_BLEU_LOSS", "lost = False"),
        # Imports: layout, offset, scale, bias, start row, language token.
        (
            "importing/huggingface.py",
            '"marian": Family("post", False, HALF_SPLIT)',
            '"marian": Family("post", False, {"type": "sinusoidal"})',
        ),
        ("importing/huggingface.py", '"layout": "fairseq", "offset": 2}', '"layout": "fairseq", "offset": 1}'),
        (
            "importing/huggingface.py",
            '"bart": Family("post", True, None, table_offset=2)',
            '"bart": Family("post", True, None, table_offset=1)',
        ),
        ("importing/huggingface.py", '"scale_embeddings": bool(described.scale_embedding)', '"scale_embeddings": True'),
        ("importing/huggingface.py", "else bias.flatten()", "else 0.0 * bias.flatten()"),
        (
            "importing/huggingface.py",
            "return [self.pad, self.unk, self.start, self.eos, *others], never",
            "return [self.pad, self.unk, self.eos, self.eos, *others], never",
        ),
        (
            "importing/huggingface.py",
            "spoken = LanguageTags(tags=tags, src_before=[SRC], tgt_before=[TGT])",
            "spoken = LanguageTags(tags=tags, src_before=[TGT], tgt_before=[TGT])",
        ),
        ("importing/huggingface.py", "src_before=[told(index, SRC) for index in frame[:end]]", "src_before=[]"),
        (
            "importing/base.py",
            "for layout, offset in itertools.product(LAYOUTS, (0, 1, 2)):",
            "for layout, offset in itertools.product(LAYOUTS, (0,)):",
        ),
        ("importing/base.py", "found[index < 0] = missing", "pass"),
        ("importing/ctranslate2.py", 'variables.number(f"{side}/{name}", default)', "default"),
        (
            "importing/ctranslate2.py",
            'return {"type": "sinusoidal", "layout": "fairseq", "offset": 1}, []',
            'return {"type": "sinusoidal", "layout": "fairseq", "offset": 0}, []',
        ),
        ("importing/ctranslate2.py", "scaled = scale != 1.0  # there", "scaled = True  # there"),
        ("importing/ctranslate2.py", "specials[BOS_ID] = place[start] if start else -1", "specials[BOS_ID] = 0"),
        ("importing/ctranslate2.py", 'described.get("add_source_eos", False)) or not own_start', "0)"),
        (
            "experiments/vocabulary.py",
            "return made, [*([index] for index in kept), *like]",
            "return made, [[index] for index in range(len(kept) + len(like))]",
        ),
        ("experiments/vocabulary.py", 'stay |= _merged_from(ids, model["merges"], stay)', "pass"),
        (
            "text/tokenizers/sentencepiece_model.py",
            "_NORMAL, _USER_DEFINED, _UNUSED = 1, 4, 5",
            "_NORMAL, _USER_DEFINED, _UNUSED = 1, 1, 5",
        ),
        (
            "alignment/lexicon.py",
            "probability = counts / np.bincount(src_ids, weights=counts)[src_ids]",
            "probability = counts",
        ),
        ("inference/watched_search.py", "log_prob / by if finished else None", "log_prob if finished else None"),
        (
            "export/huggingface_weights.py",
            "theirs = theirs.index_select(dimension, order.argsort())",
            "theirs = theirs.index_select(dimension, order)",
        ),
        (
            "text/tokenizers/language_tags.py",
            "ids = self.inner.encode(text)\n        return [*self.before, *ids, *self.after]",
            "ids = self.inner.encode(text)\n        return [*ids, *self.after]",
        ),
        ("inference/scoring.py", "Scored(total / divisor, total,", "Scored(total, total,"),
        ("inference/long_input.py", "if count(held + piece) <= limit:", "if count(held + piece) < limit:"),
        ("inference/loading.py", "min(longest))", "max(longest))"),
    )
]


def texts_are_there() -> list[str]:
    """Complaints about rows whose right text does not stand in its file exactly once."""
    counts = [(ROOT / PACKAGE / row.path).read_text(encoding="utf-8").count(row.right) for row in MUTATIONS]
    return [
        f"{row.path}: {row.right!r} is there {count} times"
        for row, count in zip(MUTATIONS, counts, strict=True)
        if count != 1
    ]


def seen_by(number: int) -> str:
    """The layer that sees a mutation: `test`, `test-system`, or `nobody`."""
    row = MUTATIONS[number]
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        for name in COPIED:
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=NOT_COPIED, symlinks=True)
        for file in filter(Path.is_file, ROOT.iterdir()):
            shutil.copy(file, folder)
        path = Path(folder) / PACKAGE / row.path
        path.write_text(path.read_text(encoding="utf-8").replace(row.right, row.wrong), encoding="utf-8")
        quick, system = "not system and not slow", "system and not slow"
        rounds = [
            ("test", quick, TESTS[row.path]),
            ("test", quick, ["unit", "contracts", "golden", "promises"]),
            ("test-system", system, SYSTEM.get(row.path, [])),
            ("test-system", system, ["system", "unit"]),
        ]
        for layer, marker, files in rounds:
            if files and fails(folder, marker, files):
                return layer
    return "nobody"


def fails(folder: str, marker: str, files: list[str]) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", "-m", marker]
    environment = {**os.environ, "PYTHONPATH": f"{folder}/src", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, *(f"tests/{name}" for name in files)], cwd=folder, env=environment, capture_output=True, check=False
    )
    return done.returncode == 1


def main() -> None:
    if complaints := texts_are_there():
        sys.exit("\n".join(complaints))
    chosen = [int(number) for number in sys.argv[1:]] or list(range(len(MUTATIONS)))
    layers = []
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for number, layer in zip(chosen, pool.map(seen_by, chosen), strict=True):
            layers.append(layer)
            row = MUTATIONS[number]
            print(f"{number:3} {layer:<12} {row.path}: {row.right.strip()!r} -> {row.wrong.strip()!r}", flush=True)
    by_test = layers.count("test")
    print(
        f"{len(chosen)} mutations: {by_test} seen by make test, {layers.count('test-system')} more by make test-system"
    )


if __name__ == "__main__":
    main()
