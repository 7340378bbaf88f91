"""Robust Queue beside the alternatives, measured: see README.md in this folder."""
