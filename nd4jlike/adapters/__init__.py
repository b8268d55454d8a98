"""Translations of a descriptor for other libraries, one module each."""
