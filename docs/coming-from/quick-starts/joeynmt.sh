set -eu
cat > recipe.yaml <<END
run_dir: runs/joeynmt
corpus:
  src_lang: de
  tgt_lang: en
  train: {type: files, src: data/demo/train.de, tgt: data/demo/train.en}
  valid: {type: files, src: data/demo/valid.de, tgt: data/demo/valid.en}
tokenizer:
  type: separate
  src: {type: subword_nmt, codes: joeynmt/bpe.codes, vocab: joeynmt/model/src_vocab.txt}
  tgt: {type: subword_nmt, codes: joeynmt/bpe.codes, vocab: joeynmt/model/trg_vocab.txt}
model: {d_model: 64, d_ff: 256, num_heads: 4, num_encoder_layers: 2, num_decoder_layers: 2, tie_embeddings: output}
training: {max_steps: ${STEPS:-400}, batch_tokens: 1024, schedule: {type: noam, factor: 2, warmup_steps: 100}}
END
dragoman train recipe.yaml
dragoman evaluate runs/joeynmt --src data/demo/test.de --ref data/demo/test.en
