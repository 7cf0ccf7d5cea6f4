"""Stages around a translator, put together: sentences, capitals, placeholders, memory, guards; lines, files, bulk."""
