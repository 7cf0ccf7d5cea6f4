"""`dragoman generate`: a language model goes on with a text."""

from typing import Annotated

import typer

from dragoman.cli.options import Device, Run, Which, given
from dragoman.cli.streams import text_output
from dragoman.inference.generator import Generator
from dragoman.progress import say
from dragoman.special_tokens import UNK_ID


def generate(
    run: Run,
    prompt: Annotated[str, typer.Option(help="Text to continue. [default: none, a line begins]")] = "",
    max_tokens: Annotated[int | None, typer.Option(help="Tokens to draw. [default: the recipe's, as for all]")] = None,
    temperature: Annotated[float | None, typer.Option(help="Less is more cautious; 0 takes the likeliest.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Draw from so many of the likeliest.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Draw from the likeliest that make up this probability.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, another text.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Texts to write, a line `---` between them.")] = 1,
    which: Which = "best",
    device: Device = "auto",
) -> None:
    """Continue a text by a language model, as it is drawn.

    Example: dragoman generate runs/tiny-shakespeare --prompt "ROMEO:" --max-tokens 300 --temperature 0.8
    """
    sampling = given(max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    generator = Generator.load(run, which=which, device=device, **sampling)
    if unknown := generator.ids(prompt).count(UNK_ID):
        say(f"tokens of the prompt that the model does not know: {unknown}")
    with text_output(None) as write:
        if count == 1:
            write(prompt)
            for piece in generator.stream(prompt):
                write(piece)
            write("\n")
        else:
            write("\n---\n".join(prompt + text for text in generator.generate([prompt] * count)) + "\n")
