"""The Vision Transformer against patches cut by hand, and all of it against Hugging Face's."""

import pytest
import torch
from tests.errors import raises_error
from torch import nn
from torch.nn import functional as F

from dragoman.errors import Error
from dragoman.models.families import ViTConfig
from dragoman.models.vit import ViT
from dragoman.nn.patches import PatchEmbedding


@pytest.mark.parametrize(("channels", "patch_size", "height", "width"), [(1, 4, 28, 28), (3, 2, 6, 4), (2, 1, 3, 3)])
def test_patch_embedding_is_a_linear_map_of_each_patch(channels: int, patch_size: int, height: int, width: int) -> None:
    torch.manual_seed(1)
    patches, images = PatchEmbedding(channels, patch_size, 8), torch.rand(2, channels, height, width)
    nn.init.normal_(patches.projection.bias)
    cut = F.unfold(images, patch_size, stride=patch_size).transpose(1, 2)  # (batch, patches, pixels)
    expected = F.linear(cut, patches.projection.weight.flatten(1), patches.projection.bias)
    torch.testing.assert_close(patches(images), expected)
    top_right = images[:, :, :patch_size, width - patch_size :].flatten(1)
    by_hand = F.linear(top_right, patches.projection.weight.flatten(1), patches.projection.bias)
    torch.testing.assert_close(patches(images)[:, width // patch_size - 1], by_hand)


def test_order_of_patches_matters_only_through_positions() -> None:
    images = torch.rand(4, 1, 8, 8)
    swapped = images.roll(4, dims=-1)  # left and right halves change places
    for position, is_same in (({"type": "none"}, True), ({"type": "learned"}, False)):
        torch.manual_seed(1)
        model = ViTConfig(image_size=8, d_model=16, num_heads=2, num_layers=1, position=position).build(num_labels=3)
        same = torch.allclose(model.eval()(images), model(swapped), atol=1e-5)
        assert same == is_same


def test_what_goes_into_the_encoder_is_normed_with_its_positions() -> None:
    torch.manual_seed(1)
    model = ViTConfig(image_size=8, d_model=16, num_heads=2, num_layers=1, embedding_norm=True).build(num_labels=3)
    nn.init.normal_(model.positions.embedding.weight)
    seen: list[torch.Tensor] = []
    model.encoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    images = torch.rand(2, 1, 8, 8)
    model.eval()(images)
    expected = F.layer_norm(model.patches(images) + model.positions.embedding.weight, (16,))
    torch.testing.assert_close(seen[0], expected)


def test_there_are_as_many_learned_positions_as_patches() -> None:
    model = ViTConfig(image_size=12, patch_size=3, d_model=16, position={"type": "learned"}).build(num_labels=2)
    assert model.positions.embedding.weight.shape == (16, 16)


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"image_size": 28, "patch_size": 5}, Error.WRONG_SETTING), ({"d_model": 30}, Error.WRONG_SETTING)],
)
def test_sizes_that_do_not_fit_are_refused(settings: dict[str, int], error: Error) -> None:
    with raises_error(error):
        ViTConfig(**settings).build(num_labels=2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_equals_hugging_face_with_copied_weights() -> None:
    from transformers import ViTConfig as TheirConfig
    from transformers import ViTForImageClassification

    torch.manual_seed(1)
    ours = ViTConfig(
        image_size=12, patch_size=4, channels=2, d_model=16, num_heads=2, d_ff=24, num_layers=2, dropout=0.0
    ).build(num_labels=3)
    theirs = ViTForImageClassification(
        TheirConfig(
            image_size=12,
            patch_size=4,
            num_channels=2,
            hidden_size=16,
            num_attention_heads=2,
            intermediate_size=24,
            num_hidden_layers=2,
            layer_norm_eps=1e-5,
            num_labels=3,
        )
    ).eval()
    with torch.no_grad():
        for parameter in ours.parameters():
            nn.init.normal_(parameter, std=0.3)
        copy_to_hugging_face(ours, theirs)
        images = torch.rand(5, 2, 12, 12)
        torch.testing.assert_close(ours.eval()(images), theirs(images).logits, atol=1e-5, rtol=1e-5)


def copy_to_hugging_face(ours: ViT, theirs: nn.Module) -> None:
    """Theirs adds a position to the class token too, which is part of the token here."""
    vit, class_token = theirs.vit, ours.encoder.class_token
    positions = torch.cat([torch.zeros(1, 16), ours.positions.embedding.weight])
    vit.embeddings.position_embeddings.copy_(positions[None])
    vit.embeddings.cls_token.copy_(class_token[None, None])
    links = [
        (vit.embeddings.patch_embeddings.projection, ours.patches.projection),
        (vit.layernorm, ours.encoder.norm),
        (theirs.classifier, ours.head),
    ]
    for their_layer, layer in zip(vit.layers, ours.encoder.layers, strict=True):
        links += [
            (their_layer.layernorm_before, layer.self_attention_residual.norm),
            (their_layer.layernorm_after, layer.feed_forward_residual.norm),
            (their_layer.attention.q_proj, layer.self_attention.query_proj),
            (their_layer.attention.k_proj, layer.self_attention.key_proj),
            (their_layer.attention.v_proj, layer.self_attention.value_proj),
            (their_layer.attention.o_proj, layer.self_attention.output_proj),
            (their_layer.mlp.fc1, layer.feed_forward.expand),
            (their_layer.mlp.fc2, layer.feed_forward.contract),
        ]
    for their_part, part in links:
        their_part.load_state_dict(part.state_dict())
