"""A checkpoint of fairseq as safetensors and JSON, which `dragoman import` reads.

    python to_safetensors.py checkpoint_best.pt data-bin FOLDER

It runs where fairseq is installed, with safetensors beside it, and not where Dragoman is: a checkpoint is a pickle,
which may run any code when it is opened. Take those of people whom you trust. `data-bin` holds the dictionaries
(`dict.de.txt`, `dict.en.txt`).
"""

import dataclasses
import json
import sys
from pathlib import Path

from fairseq import checkpoint_utils
from fairseq.models.transformer import TransformerConfig
from safetensors.torch import save_file


def plain(value):
    """A setting as JSON holds it."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def main(checkpoint, data, folder):
    [model], settings, task = checkpoint_utils.load_model_ensemble_and_task([checkpoint], arg_overrides={"data": data})
    folder = Path(folder)
    folder.mkdir(parents=True)
    described = {
        "format": "fairseq-model",
        "kinds": [type(part).__name__ for part in (model, model.encoder, model.decoder)],
        "task": type(task).__name__,
        "settings": plain(TransformerConfig.from_namespace(settings.model)),
        "languages": [task.cfg.source_lang, task.cfg.target_lang],
        "source": task.source_dictionary.symbols,
        "target": task.target_dictionary.symbols,
        "specials": {
            name: getattr(task.target_dictionary, f"{name}_word", None) for name in ("bos", "pad", "eos", "unk")
        },
    }
    save_file({name: tensor.clone() for name, tensor in model.state_dict().items()}, folder / "model.safetensors")
    (folder / "fairseq.json").write_text(json.dumps(described, ensure_ascii=False, indent=1), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
