"""Answers that scripted peers give clients under judgement, honest and wrong, as the bytes that go out.

They are put together by code of their own, with the arithmetic in the open: nothing of the encoder that makes the
suite's requests is used, so that a mistake there cannot hide one here.
"""
