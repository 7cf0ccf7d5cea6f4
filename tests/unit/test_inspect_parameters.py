"""Parameter counts: everything once, shared matrices marked, layers alike together."""

import pytest
from torch import nn

from dragoman.analysis.parameters import parameter_counts, parameter_table, parameters_figure
from dragoman.models.families import TransformerConfig


def transformer(tie: str) -> nn.Module:
    config = TransformerConfig(d_model=8, num_heads=2, d_ff=16, num_encoder_layers=3, tie_embeddings=tie)
    return config.build(src_vocab_size=50, tgt_vocab_size=50, shared_vocab=True, pad_id=0)


@pytest.mark.parametrize("tie", ["none", "output", "all"])
def test_the_whole_is_the_sum_of_its_parts_at_every_level(tie: str) -> None:
    model = transformer(tie)
    counts = parameter_counts(model)
    assert counts[0].parameters == sum(parameter.numel() for parameter in model.parameters())
    for level in range(1, 3):
        assert sum(row.parameters for row in counts if row.depth == 1) == counts[0].parameters
        for place, row in enumerate(counts):
            inside = []
            for other in counts[place + 1 :]:
                if other.depth <= row.depth:
                    break
                inside += [other] if other.depth == row.depth + 1 else []
            if inside and row.depth == level:
                assert sum(other.parameters for other in inside) == row.parameters, row


def test_a_tied_matrix_counts_where_it_comes_first_and_is_marked_elsewhere() -> None:
    by_path = {row.path: row for row in parameter_counts(transformer("all"), depth=1)}
    assert by_path["src_embedding"].parameters == 50 * 8
    assert by_path["src_embedding"].shared == ""
    for name in ("tgt_embedding", "output"):
        assert by_path[name].parameters == 0
        assert by_path[name].shared == "src_embedding.tokens.embedding.weight"
    untied = {row.path: row for row in parameter_counts(transformer("none"), depth=1)}
    assert untied["output"].parameters == untied["tgt_embedding"].parameters == 50 * 8
    assert not any(row.shared for row in untied.values())


def test_layers_alike_are_one_row_and_others_are_not() -> None:
    alike = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(2, 3))  # the ReLU between has no parameters
    rows = parameter_counts(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 3), alike))
    assert [(row.path, row.copies, row.parameters) for row in rows[1:4]] == [("0-1", 2, 12), ("2", 1, 9), ("3", 1, 18)]
    layers = next(row for row in parameter_counts(transformer("all")) if row.copies == 3)
    assert layers.path == "0-2"
    assert layers.kind == "EncoderLayer"


def test_a_layer_used_many_times_counts_once() -> None:
    layer = nn.Linear(4, 4)
    rows = parameter_counts(nn.ModuleDict({"first": nn.Sequential(layer), "again": nn.Sequential(layer)}))
    assert rows[0].parameters == 20
    again = next(row for row in rows if row.path == "again")
    assert again.parameters == 0
    assert again.shared == "first.0.weight, first.0.bias"


def test_depth_limits_the_table() -> None:
    assert len(parameter_counts(transformer("all"), depth=0)) == 1
    assert max(row.depth for row in parameter_counts(transformer("all"), depth=2)) == 2


def test_table_and_figure_say_the_same() -> None:
    counts = parameter_counts(transformer("all"), depth=2)
    lines = parameter_table(counts).splitlines()
    assert len(lines) == len(counts) + 1
    assert lines[0].split() == ["module", "class", "parameters", "share"]
    assert "100.0 %" in lines[1]
    assert sum("+ shared: src_embedding.tokens.embedding.weight" in line for line in lines) == 3
    figure = parameters_figure(counts)
    (axes,) = figure.axes
    assert [bar.get_width() for bar in axes.patches] == [row.parameters for row in counts[1:]]
    assert figure.get_suptitle() == f"Transformer: {counts[0].parameters:,} parameters"


def test_a_model_without_parts() -> None:
    counts = parameter_counts(nn.Linear(2, 3))
    assert [row.parameters for row in counts] == [9]
    parameters_figure(counts).canvas.draw()
