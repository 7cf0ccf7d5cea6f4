#!/usr/bin/env bash
# All that one person with a GPU can measure for us, half an hour of an H100 with its compilations:
#
#     DRAGOMAN_DATA=FOLDER bash benchmarks/gpu.sh OUT            # OUT gets a log for each part
#     DRAGOMAN_DATA=FOLDER bash benchmarks/gpu.sh OUT --small    # on a CPU, to see that the script runs
#
# FOLDER has Multi30k (multi30k/ and multi30k-tok/). Each part has a time limit, and the next one comes when it is over;
# PARTS="step training" chooses, PYTHON=... too. docs/gpu.md says what was measured with it.
set -u
cd "$(dirname "$0")/.."
out=${1:?a folder for the logs}
small=${2:-}
python=${PYTHON:-python}
export PYTHONPATH="src${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
mkdir -p "$out"
device=cuda
[ -n "$small" ] && device=cpu
gpu="$python benchmarks/gpu.py --device $device $small"
src=${DRAGOMAN_DATA:-data}/multi30k-tok/test_2016_flickr.lc.norm.tok.en.gz
steps="" bench="--rounds 5 --steps 10"
[ -n "$small" ] && steps="training.max_steps=4 training.validate_every=4 training.batch_tokens=512 model.d_model=64 model.d_ff=128 tokenizer.vocab_size=1000" && bench="--rounds 1 --steps 1 model.d_model=64 model.d_ff=128 training.batch_tokens=512"

part() {  # NAME SECONDS COMMAND ...
    case " ${PARTS:-checks step attention training speedrun translate} " in *" ${1%%-*} "*) ;; *) return ;; esac
    local name=$1 limit=$2
    shift 2
    timeout "$limit" "$@" > "$out/$name.log" 2>&1
    echo "$name ended with code $?" >> "$out/$name.log"
}

{
    $python -c "import torch, platform; print(torch.__version__, platform.processor(), torch.cuda.get_device_name() if torch.cuda.is_available() else 'no GPU')"
    git describe --always --dirty
} > "$out/machine.log" 2>&1
part checks-equal 200 $gpu equal
part checks-batches 100 $gpu batches
part checks-repeat 600 $gpu repeat
part checks-shapes 900 $gpu shapes
part step 200 $gpu step
part attention 200 $gpu attention
part training-layers 200 $python benchmarks/training.py recipes/base-gpu.yaml --device $device --compile layers $bench
part speedrun 300 $python -m dragoman train recipes/multi30k-en-de-gpu.yaml --run "$out/run" device=$device $steps
part translate 300 $gpu translate --run "$out/run" --src "$src"
tail -n 30 "$out"/*.log
