set -eu
mkdir -p joeynmt
cat data/demo/train.de data/demo/train.en | subword-nmt learn-bpe -s 500 > joeynmt/bpe.codes
cat > joeynmt/config.yaml <<END
name: quick-start
joeynmt_version: "2.3.0"
model_dir: joeynmt/model
use_cuda: False
random_seed: 42
data:
  train: data/demo/train
  dev: data/demo/valid
  test: data/demo/test
  dataset_type: plain
  src: &side
    lang: de
    level: bpe
    lowercase: False
    max_length: 100
    voc_min_freq: 1
    tokenizer_type: subword-nmt
    tokenizer_cfg: {codes: joeynmt/bpe.codes, num_merges: 500, pretokenizer: none}
  trg: {<<: *side, lang: en}
testing: {beam_size: 5, beam_alpha: 1.0, batch_size: 1024, batch_type: token, max_output_length: 60, eval_metrics: [bleu]}
training:
  optimizer: adam
  learning_rate: 0.005
  scheduling: noam
  learning_rate_warmup: 100
  batch_size: 1024
  batch_type: token
  epochs: 100
  updates: ${STEPS:-400}
  logging_freq: 10
  validation_freq: ${STEPS:-400}
  overwrite: True
model:
  tied_softmax: True
  encoder: &stack
    type: transformer
    num_layers: 2
    num_heads: 4
    embeddings: {embedding_dim: 64, scale: True}
    hidden_size: 64
    ff_size: 256
  decoder: *stack
END
python -m joeynmt train joeynmt/config.yaml
