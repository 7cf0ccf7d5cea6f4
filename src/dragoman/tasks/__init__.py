"""What a recipe can train, one folder each: recipe, job, task."""
