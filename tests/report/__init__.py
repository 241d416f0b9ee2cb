"""Tests of pictures and pages."""
