set -eu
dragoman train --src data/demo/train.de --tgt data/demo/train.en --valid-src data/demo/valid.de --valid-tgt data/demo/valid.en \
    tokenizer='{type: separate, src: {type: words, min_count: 2}, tgt: {type: words, min_count: 2}}' corpus.max_tokens=72 \
    model='{norm_placement: pre, position: {type: sinusoidal}, dropout: 0.1, d_model: 64, d_ff: 256, num_heads: 4}' \
    model.num_encoder_layers=2 model.num_decoder_layers=2 model.tie_embeddings=output training.label_smoothing=0.1 training.optimizer.beta2=0.98 \
    training.batch_sentences=32 training.micro_batches=1 training.max_epochs=8 training.max_steps="${STEPS:-800}" \
    training.schedule='{type: noam, factor: 1.0, warmup_steps: 200}' --run runs/annotated
dragoman evaluate runs/annotated --src data/demo/test.de --ref data/demo/test.en --beam-size 1
