set -eu
export TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1  # with PyTorch 2.6 and later; the checkpoint is your own
mkdir -p opennmt-py
cat > opennmt-py/config.yaml <<END
save_data: opennmt-py/run/example
src_vocab: opennmt-py/run/example.vocab.src
tgt_vocab: opennmt-py/run/example.vocab.tgt
overwrite: True
data:
  corpus_1: {path_src: data/demo/train.de, path_tgt: data/demo/train.en}
  valid: {path_src: data/demo/valid.de, path_tgt: data/demo/valid.en}
save_model: opennmt-py/run/model
save_checkpoint_steps: ${STEPS:-400}
train_steps: ${STEPS:-400}
valid_steps: ${STEPS:-400}
encoder_type: transformer
decoder_type: transformer
self_attn_type: scaled-dot
position_encoding: true
layers: 2
heads: 4
hidden_size: 64
word_vec_size: 64
transformer_ff: 256
optim: adam
learning_rate: 2
decay_method: noam
warmup_steps: 100
batch_type: tokens
batch_size: 1024
bucket_size: 1024
num_workers: 0
END
onmt_build_vocab -config opennmt-py/config.yaml -n_sample -1
onmt_train -config opennmt-py/config.yaml
onmt_translate -model "opennmt-py/run/model_step_${STEPS:-400}.pt" -src data/demo/test.de -output opennmt-py/their-pred.txt
sacrebleu data/demo/test.en -i opennmt-py/their-pred.txt
