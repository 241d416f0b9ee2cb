"""Tests, as a package so that their files may share names and strategies."""
