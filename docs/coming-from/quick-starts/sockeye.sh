set -eu
dragoman train --src data/demo/train.de --tgt data/demo/train.en --valid-src data/demo/valid.de --valid-tgt data/demo/valid.en \
    tokenizer='{type: subword_nmt, codes: sockeye/bpe.codes, vocab: sockeye/prepared/vocab.src.0.json}' \
    model.num_encoder_layers=2 model.num_decoder_layers=2 model.d_model=64 model.d_ff=256 model.num_heads=4 \
    model.tie_embeddings=all training.max_steps="${STEPS:-400}" training.batch_tokens=1024 \
    training.schedule='{type: inverse_sqrt, lr: 0.005, warmup_steps: 100}' --run runs/sockeye
dragoman translate runs/sockeye < data/demo/test.de > sockeye/out.en
dragoman evaluate --hypotheses sockeye/out.en --ref data/demo/test.en --src data/demo/test.de
