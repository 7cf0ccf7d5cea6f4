set -eu
mkdir -p moses
for lang in de en; do
    for set in train valid test; do
        sacremoses -l $lang tokenize -x < data/demo/$set.$lang > moses/$set.tok.$lang
    done
    sacremoses -l $lang train-truecase -m moses/truecase-model.$lang < moses/train.tok.$lang
    for set in train valid test; do
        sacremoses -l $lang truecase -m moses/truecase-model.$lang < moses/$set.tok.$lang > moses/$set.true.$lang
    done
done
