set -eu
dragoman train --src data/demo/train.de --tgt data/demo/train.en --valid-src data/demo/valid.de --valid-tgt data/demo/valid.en \
    model='{d_model: 64, d_ff: 256, num_heads: 4, num_encoder_layers: 2, num_decoder_layers: 2}' \
    training.max_steps="${STEPS:-400}" training.batch_tokens=1024 --run runs/de-en
dragoman serve runs/de-en --port "${PORT:-5000}" 2> server.log &
trap 'kill $!' EXIT
until curl -sf "http://localhost:${PORT:-5000}/ready" > ready; do sleep 1; done
curl -sf --retry 9 --retry-delay 2 --retry-all-errors "http://localhost:${PORT:-5000}/translate" -d source=de -d target=en --data-urlencode q@data/demo/test.de \
    | python -c 'import json, sys; sys.stdout.write(json.load(sys.stdin)["translatedText"])' > output
dragoman evaluate --hypotheses output --ref data/demo/test.en --src data/demo/test.de
