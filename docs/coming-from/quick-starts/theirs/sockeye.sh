set -eu
mkdir -p sockeye
cat data/demo/train.de data/demo/train.en | subword-nmt learn-bpe -s 500 > sockeye/bpe.codes
for side in train.de train.en valid.de valid.en test.de; do
    subword-nmt apply-bpe -c sockeye/bpe.codes < data/demo/$side > sockeye/$side
done
sockeye-prepare-data -s sockeye/train.de -t sockeye/train.en --shared-vocab --max-processes 1 -o sockeye/prepared
sockeye-train -d sockeye/prepared -vs sockeye/valid.de -vt sockeye/valid.en -o sockeye/model --shared-vocab --use-cpu \
    --num-layers 2 --transformer-model-size 64 --transformer-feed-forward-num-hidden 256 --transformer-attention-heads 4 \
    --initial-learning-rate 0.005 --learning-rate-scheduler-type inv-sqrt-decay --learning-rate-warmup 100 \
    --batch-type word --batch-size 1024 --checkpoint-interval "${STEPS:-400}" --max-updates "${STEPS:-400}" \
    --decode-and-evaluate 0 --overwrite-output
sockeye-translate -m sockeye/model --use-cpu < sockeye/test.de | sed -r 's/@@( |$)//g' > sockeye/their-out.en
sacrebleu data/demo/test.en -i sockeye/their-out.en
