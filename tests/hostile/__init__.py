"""Peers that mean harm: each case is a row, with what the judge has to make of it."""
