"""Conversions of samples to the formats of other tools, each checked against eager."""

from .converting import ConversionReport, Converted, convert
from .formats import FORMATS, Format, find_format

__all__ = ["FORMATS", "ConversionReport", "Converted", "Format", "convert", "find_format"]
