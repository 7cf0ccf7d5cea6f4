"""The parts of `dragoman learn`: chapters that run, exercises that grade themselves, bugs to hunt."""
