"""The grammars that made the text of `dragoman.corpora.embedded`: German-English and Chinese-English."""
