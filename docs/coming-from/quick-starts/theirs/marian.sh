set -eu
mkdir -p marian
python - <<END
import sentencepiece
sentencepiece.SentencePieceTrainer.train(
    input=["data/demo/train.de", "data/demo/train.en"], model_prefix="marian/vocab", vocab_size=400, bos_id=-1,
    eos_id=0, unk_id=1, minloglevel=2)
END
mv marian/vocab.model marian/vocab.spm
pymarian train --train-sets data/demo/train.de data/demo/train.en --vocabs marian/vocab.spm marian/vocab.spm \
    --model marian/model.npz --type transformer --enc-depth 2 --dec-depth 2 --dim-emb 64 --transformer-dim-ffn 256 \
    --transformer-heads 4 --tied-embeddings-all --learn-rate 0.005 --lr-warmup 100 --lr-decay-inv-sqrt 100 \
    --label-smoothing 0.1 --optimizer-params 0.9 0.98 1e-09 --mini-batch 32 --after "${STEPS:-400}u" --cpu-threads 1 \
    --workspace 500 --seed 1 --quiet
pymarian decode --config marian/model.npz.decoder.yml --cpu-threads 1 --beam-size 1 --quiet \
    < data/demo/test.de > marian/their-output
sacrebleu data/demo/test.en -i marian/their-output
