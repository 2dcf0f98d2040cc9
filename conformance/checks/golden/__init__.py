"""The golden requests of `fixtures/`, replayed byte for byte."""
