"""Tiered log lifecycle manager for GPU-training platforms."""

__version__ = "0.1.0"
