set -eu
cat > recipe.yaml <<END
run_dir: runs/opennmt-py
corpus:
  src_lang: de
  tgt_lang: en
  train: {type: files, src: data/demo/train.de, tgt: data/demo/train.en}
  valid: {type: files, src: data/demo/valid.de, tgt: data/demo/valid.en}
tokenizer:
  type: separate
  src: {type: whitespace, vocab: opennmt-py/run/example.vocab.src}
  tgt: {type: whitespace, vocab: opennmt-py/run/example.vocab.tgt}
model: {d_model: 64, d_ff: 256, num_heads: 4, num_encoder_layers: 2, num_decoder_layers: 2, tie_embeddings: output}
training: {max_steps: ${STEPS:-400}, batch_tokens: 1024, schedule: {type: noam, factor: 2, warmup_steps: 100}}
END
dragoman train recipe.yaml
dragoman translate runs/opennmt-py --input data/demo/test.de --output opennmt-py/pred.txt
dragoman evaluate --hypotheses opennmt-py/pred.txt --ref data/demo/test.en --src data/demo/test.de
