set -eu
side='type: subword_nmt, codes: fairseq/bpe.codes'
dragoman train --src data/demo/train.de --tgt data/demo/train.en --valid-src data/demo/valid.de --valid-tgt data/demo/valid.en \
    "tokenizer={type: separate, src: {$side, vocab: fairseq/data-bin/dict.de.txt}, tgt: {$side, vocab: fairseq/data-bin/dict.en.txt}}" \
    model.num_encoder_layers=2 model.num_decoder_layers=2 model.d_model=64 model.d_ff=256 model.num_heads=4 \
    model.tie_embeddings=output training.max_steps="${STEPS:-400}" training.batch_tokens=1024 \
    training.schedule='{type: inverse_sqrt, lr: 0.005, warmup_steps: 100}' --run runs/fairseq
dragoman evaluate runs/fairseq --src data/demo/test.de --ref data/demo/test.en
