"""Word alignment: which word comes from which, by attention, by erasure, by a lexicon; codes and terms put in place."""
