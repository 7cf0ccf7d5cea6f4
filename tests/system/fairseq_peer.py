"""fairseq's part of a test, in an environment that has it: a checkpoint at random weights, and what it translates.

python fairseq_peer.py make DATA CHECKPOINT OPTION ...
python fairseq_peer.py translate DATA CHECKPOINT BEAM < LINES
"""

import json
import sys

import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

FEW = 20
"""The longest translation; a model that has learnt nothing goes on to it."""


def make(data, checkpoint, *more):
    arguments = [data, "--task", "translation", "-s", "de", "-t", "en", "--optimizer", "adam", *more]
    settings = convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), arguments))
    model = tasks.setup_task(settings.task).build_model(settings.model)
    torch.manual_seed(5)
    for name, parameter in model.named_parameters():
        with torch.no_grad():
            parameter.copy_(float("norm.weight" in name) + 0.3 * torch.randn_like(parameter))
    # As its trainer writes it.
    settings = OmegaConf.to_container(settings, resolve=True, enum_to_str=True)
    state = {
        "args": None,
        "cfg": settings,
        "model": model.state_dict(),
        "extra_state": {"train_iterator": {"epoch": 1}},
    }
    history = {"optimizer_name": "Adam", "criterion_name": "A", "num_updates": 1, "lr_scheduler_state": {}}
    state["optimizer_history"] = [history]
    torch.save(state, checkpoint)


def translate(data, checkpoint, beam):
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([checkpoint], arg_overrides={"data": data})
    generator = task.build_generator(
        models, OmegaConf.create({"beam": int(beam), "max_len_a": 0, "max_len_b": FEW, "lenpen": 1, "unkpen": 0})
    )
    for model in models:
        model.eval()
    found = []
    for line in sys.stdin.read().splitlines():
        ids = task.source_dictionary.encode_line(line, add_if_not_exist=False).long()[None]
        sample = {"net_input": {"src_tokens": ids, "src_lengths": torch.tensor([ids.size(1)])}}
        best = task.inference_step(generator, models, sample)[0][0]
        found.append([task.target_dictionary.string(best["tokens"]), float(best["score"])])
    print(json.dumps(found))


if __name__ == "__main__":
    {"make": make, "translate": translate}[sys.argv[1]](*sys.argv[2:])
