set -eu
python - <<END
from pathlib import Path

import ctranslate2
import sentencepiece

[spm, *_] = Path("de_en_ctranslate2").rglob("*.model")
pieces = sentencepiece.SentencePieceProcessor(model_file=str(spm))
translator = ctranslate2.Translator("de_en_ctranslate2", device="cpu")
lines = Path("data/demo/test.de").read_text(encoding="utf-8").splitlines()
found = translator.translate_batch([pieces.encode(line, out_type=str) for line in lines], beam_size=1)
Path("their-output").write_text("".join(pieces.decode(one.hypotheses[0]) + "\n" for one in found), encoding="utf-8")
END
sacrebleu data/demo/test.en -i their-output
