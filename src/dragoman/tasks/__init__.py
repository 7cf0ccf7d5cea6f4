"""The kinds of models that a recipe can train, one folder each: recipe, job, task."""
