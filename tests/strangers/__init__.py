"""Honest servers that are not ours: each written from the protocol's documents and the list of model roles alone.

Their authors had not seen the suite, its checks or the bundled server. They are kept as they were written: what a
verdict holds against one of them is looked into as a fault of the suite first.
"""
