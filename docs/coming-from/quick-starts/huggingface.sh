set -eu
cat > recipe.yaml <<END
run_dir: runs/huggingface
corpus:
  src_lang: de
  tgt_lang: en
  normalize: none
  train: {type: jsonl, path: huggingface/train.json, src_key: translation.de, tgt_key: translation.en}
  valid: {type: jsonl, path: huggingface/valid.json, src_key: translation.de, tgt_key: translation.en}
tokenizer: {type: hub, model: huggingface/tokenizer.json}
model: {d_model: 64, d_ff: 256, num_heads: 4, num_encoder_layers: 2, num_decoder_layers: 2, tie_embeddings: all}
training: {max_steps: ${STEPS:-400}, batch_sentences: 64, schedule: {type: linear, lr: 0.005, warmup_steps: 50}}
END
dragoman train recipe.yaml
dragoman export runs/huggingface huggingface/trained --to huggingface
dragoman evaluate runs/huggingface --src data/demo/test.de --ref data/demo/test.en
