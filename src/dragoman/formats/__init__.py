"""Files that people translate: where their texts stand, and how translations are put there."""
