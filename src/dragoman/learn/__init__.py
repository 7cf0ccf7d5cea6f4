"""What `dragoman learn` is made of: chapters that run, exercises that grade themselves, bugs to hunt."""
