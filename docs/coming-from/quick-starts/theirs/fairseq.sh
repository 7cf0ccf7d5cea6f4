set -eu
export TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD=1  # with PyTorch 2.6 and later; the checkpoint is your own
mkdir -p fairseq
cat data/demo/train.de data/demo/train.en | subword-nmt learn-bpe -s 500 > fairseq/bpe.codes
for side in train.de train.en valid.de valid.en test.de test.en; do
    subword-nmt apply-bpe -c fairseq/bpe.codes < data/demo/$side > fairseq/$side
done
fairseq-preprocess --source-lang de --target-lang en --trainpref fairseq/train --validpref fairseq/valid \
    --testpref fairseq/test --destdir fairseq/data-bin --workers 1
fairseq-train fairseq/data-bin --arch transformer --share-decoder-input-output-embed \
    --encoder-layers 2 --decoder-layers 2 --encoder-embed-dim 64 --decoder-embed-dim 64 \
    --encoder-ffn-embed-dim 256 --decoder-ffn-embed-dim 256 --encoder-attention-heads 4 --decoder-attention-heads 4 \
    --optimizer adam --lr 0.005 --lr-scheduler inverse_sqrt --warmup-updates 100 --max-tokens 1024 \
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --max-update "${STEPS:-400}" \
    --cpu --num-workers 0 --save-dir fairseq/checkpoints
fairseq-generate fairseq/data-bin --path fairseq/checkpoints/checkpoint_best.pt --remove-bpe --cpu --num-workers 0 \
    > fairseq/generated
tail -n 1 fairseq/generated
