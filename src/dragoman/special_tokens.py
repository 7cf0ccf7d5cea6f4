"""The special tokens: the first four of every vocabulary."""

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
"""Their names, in the order of their ids."""
