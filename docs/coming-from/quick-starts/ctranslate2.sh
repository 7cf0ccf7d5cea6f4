set -eu
dragoman train --src data/demo/train.de --tgt data/demo/train.en --valid-src data/demo/valid.de --valid-tgt data/demo/valid.en \
    model='{d_model: 64, d_ff: 256, num_heads: 4, num_encoder_layers: 2, num_decoder_layers: 2}' decoding.beam_size=1 \
    tokenizer='{type: sentencepiece, vocab_size: 600}' training.max_steps="${STEPS:-400}" training.batch_tokens=1024 --run runs/ctranslate2
dragoman export runs/ctranslate2 de_en_ctranslate2 --to ctranslate2
dragoman import de_en_ctranslate2 runs/imported
dragoman translate runs/imported --engine ctranslate2 --beam-size 1 < data/demo/test.de > output
dragoman evaluate --hypotheses output --ref data/demo/test.en --src data/demo/test.de
