"""Facts about languages: codes, names, writing, identification."""
