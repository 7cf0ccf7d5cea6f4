set -eu
dragoman train --src moses/train.true.de --tgt moses/train.true.en --valid-src moses/valid.true.de --valid-tgt moses/valid.true.en \
    tokenizer.type=whitespace corpus.max_tokens=80 model.d_model=64 model.d_ff=256 model.num_heads=4 \
    model.num_encoder_layers=2 model.num_decoder_layers=2 training.max_steps="${STEPS:-400}" training.batch_tokens=1024 \
    training.schedule='{type: inverse_sqrt, lr: 0.005, warmup_steps: 100}' --run runs/moses
dragoman translate runs/moses < moses/test.true.de > moses/output
dragoman evaluate --hypotheses moses/output --ref moses/test.true.en --src moses/test.true.de --tokenize none
