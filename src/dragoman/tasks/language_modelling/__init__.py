"""Language modelling: one long text to a model that continues it."""
