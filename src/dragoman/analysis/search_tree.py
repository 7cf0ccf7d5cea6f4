"""A beam search as a table and as a tree: which hypotheses went on, which ended, and why the others died."""

from typing import Any

from dragoman.analysis.figure import INK, MUTED, PALETTE, TRAIN, Figure, new_figure, styled
from dragoman.inference.watched_search import END_TOO_LOW, FINISHED, GOES_ON, Candidate, SearchStep, WatchedSearch

MAX_STEPS = 24
"""Steps that a picture has room for."""


def search_table(watched: WatchedSearch) -> str:
    """Every step of a search with its arithmetic, as lines of text."""
    lines = [
        f"source    {' '.join(watched.src)}",
        f"beam      {watched.beam_size}, at most {watched.longest} tokens",
        "",
    ]
    for step in watched.steps:
        lines.append(f"step {step.length}: what is alive, and the most probable next tokens of each")
        for place, alive in enumerate(step.alive):
            following = "  ".join(f"{one.piece} {100 * one.prob:.1f}%" for one in alive.next)
            lines += [f"  {place + 1}  {' '.join(alive.pieces)}   ln p {alive.log_prob:.4f}", f"       {following}"]
        lines.append("  candidates, best first")
        for candidate in step.candidates:
            lines.append(
                f"     {candidate.parent + 1} + {candidate.piece:<14} ln p {candidate.log_prob:9.4f}   "
                f"{fate(watched, step, candidate)}"
            )
        best = "none yet" if step.best_finished is None else f"{step.best_finished:.4f}"
        lines.append(
            f"  best finished {best}; those that go on can reach {step.still_possible:.4f}; "
            f"the decoder remembers {step.cache}"
        )
        lines.append("")
    lines.append(f"stopped: {watched.stopped}")
    for hypothesis, text in zip(watched.hypotheses, watched.texts, strict=True):
        lines.append(f"found: {text}   score {hypothesis.score:.4f}, ln p {hypothesis.log_prob:.4f}")
    return "\n".join(lines)


def fate(watched: WatchedSearch, step: SearchStep, candidate: Candidate) -> str:
    """The end of a candidate and its reason, with the arithmetic of the length penalty where it ended."""
    if candidate.fate == FINISHED:
        won = "the winner" if candidate.wins else f"{watched.hypotheses[0].score:.4f} has won"
        return f"finished: {candidate.log_prob:.4f} / {step.divisor:.4g} = {candidate.score:.4f}, {won}"
    if candidate.fate == GOES_ON and candidate.place is not None:
        ends = "" if candidate.has_heirs else "; then nothing of it is kept"
        ends = "; it had not ended when the search stopped" if step is watched.steps[-1] else ends
        return f"goes on as {candidate.place + 1}{ends}"
    if candidate.fate == END_TOO_LOW:
        return f"dropped: ends, but is not among the best {watched.beam_size}"
    kept = min((one.log_prob for one in step.candidates if one.fate == GOES_ON), default=None)
    return "dropped: others are more probable" + ("" if kept is None else f", the last that is kept has {kept:.4f}")


@styled
def search_figure(watched: WatchedSearch) -> Figure:
    """The tree of a search, a column for each step: boxes go on, green ones ended, grey words were dropped; the
    best translation is orange."""
    steps = watched.steps[:MAX_STEPS]
    rows = max(len(step.candidates) for step in steps)
    cut = f" (its first {MAX_STEPS} steps)" if len(watched.steps) > MAX_STEPS else ""
    figure = new_figure(
        1.6 + 1.35 * len(steps),
        1.5 + 0.5 * rows,
        f"Beam search of {' '.join(watched.src)!r}, beam {watched.beam_size}{cut}",
    )
    axes: Any = figure.subplots()
    axes.set_axis_off()
    axes.set_xlim(-0.5, len(steps) + 0.6)
    axes.set_ylim(rows - 0.3, -1.0)
    box = {"boxstyle": "round,pad=0.3", "linewidth": 0.8}
    where = [(0.0, 0.0)]
    axes.text(0, 0, "<s>", ha="center", va="center", fontsize=8, bbox={**box, "facecolor": "white", "edgecolor": INK})
    for x, step in enumerate(steps, start=1):
        axes.text(
            x, -0.75, f"step {step.length}\n÷ {step.divisor:.3g}", ha="center", va="center", fontsize=7.5, color=MUTED
        )
        order = sorted(step.candidates, key=lambda one: (one.place is None, one.place or 0))
        places: dict[int, tuple[float, float]] = {}
        for y, one in enumerate(order):
            start = where[one.parent]
            lives, ended = one.fate == GOES_ON, one.fate == FINISHED
            color = PALETTE[1] if one.wins else TRAIN if lives else PALETTE[2] if ended else MUTED
            width = 2.4 if one.wins else 1.2 if lives or ended else 0.4
            line = {"arrowstyle": "-", "color": color, "linewidth": width}
            axes.annotate("", (x - 0.2, y), (start[0] + 0.2, start[1]), arrowprops=line)
            label = f"{one.piece}\n{one.score:.3f}" if ended else f"{one.piece}\n{one.log_prob:.2f}"
            label = f"★ {label}" if one.wins and (ended or x == len(watched.steps)) else label
            frame = {**box, "facecolor": "white", "edgecolor": color} if lives or ended else None
            axes.text(
                x, y, label, ha="center", va="center", fontsize=7, color=color if frame is None else INK, bbox=frame
            )
            if lives and one.place is not None:
                places[one.place] = (x, y)
        where = [places[place] for place in sorted(places)]
    axes.text(
        0, rows - 0.45, "orange: the best (★); blue: goes on (ln p); green: finished (ln p ÷ divisor); grey: dropped",
        fontsize=7.5, color=MUTED, va="center",
    )  # fmt: skip
    return figure
