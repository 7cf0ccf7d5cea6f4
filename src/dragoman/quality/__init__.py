"""Quality of texts and translations: metrics, faults, significance. Needs no model."""
