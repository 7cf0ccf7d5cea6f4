"""Classification of texts and images."""
