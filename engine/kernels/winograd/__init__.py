"""Convolutions of 3×3 windows by minimal filtering: fewer multiplications, where numbers allow it."""
