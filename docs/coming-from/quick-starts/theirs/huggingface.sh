set -eu
mkdir -p huggingface
python - <<END
import json

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import BartConfig, BartForConditionalGeneration, DataCollatorForSeq2Seq, PreTrainedTokenizerFast
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

texts = {}
for split in ("train", "valid"):
    sides = [open(f"data/demo/{split}.{code}", encoding="utf-8").read().splitlines() for code in ("de", "en")]
    texts[split] = [{"de": src, "en": tgt} for src, tgt in zip(*sides, strict=True)]
    with open(f"huggingface/{split}.json", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"translation": pair}, ensure_ascii=False) + "\n" for pair in texts[split])

bpe = Tokenizer(models.BPE(unk_token="<unk>"))
bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()
specials = ["<s>", "<pad>", "</s>", "<unk>"]
bpe.train_from_iterator(
    (text for pair in texts["train"] for text in pair.values()), trainers.BpeTrainer(vocab_size=600, special_tokens=specials)
)
bpe.post_processor = processors.TemplateProcessing(single="<s> \$A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=bpe, bos_token="<s>", pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
)
tokenizer.save_pretrained("huggingface")
model = BartForConditionalGeneration(BartConfig(
    vocab_size=len(tokenizer), d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256, max_position_embeddings=128,
))
rows = [dict(tokenizer(pair["de"], text_target=pair["en"])) for pair in texts["train"]]
arguments = Seq2SeqTrainingArguments(
    "huggingface/trained-there", max_steps=${STEPS:-400}, per_device_train_batch_size=64, learning_rate=0.005,
    warmup_steps=50, use_cpu=True, report_to=[], save_strategy="no",
)
trainer = Seq2SeqTrainer(model, arguments, train_dataset=rows, data_collator=DataCollatorForSeq2Seq(tokenizer, model))
print(trainer.train().metrics["train_loss"])
END
