set -eu
sed 's/ a / the /; s/ is / was /' data/demo/test.en > output
dragoman evaluate --hypotheses output --ref data/demo/test.en --metric bleu --metric chrf --metric ter
