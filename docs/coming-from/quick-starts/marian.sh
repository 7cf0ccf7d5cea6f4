set -eu
dragoman train --src data/demo/train.de --tgt data/demo/train.en --valid-src data/demo/valid.de --valid-tgt data/demo/valid.en \
    tokenizer='{type: sentencepiece, model: marian/vocab.spm}' corpus.normalize=none \
    model.num_encoder_layers=2 model.num_decoder_layers=2 model.d_model=64 model.d_ff=256 model.num_heads=4 \
    model.tie_embeddings=all training.max_steps="${STEPS:-400}" training.batch_tokens=1024 \
    training.schedule='{type: inverse_sqrt, lr: 0.005, warmup_steps: 100}' --run runs/marian
dragoman evaluate runs/marian --src data/demo/test.de --ref data/demo/test.en
