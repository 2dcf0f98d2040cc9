"""Certification: a folder with the evidence of one run, which anybody verifies offline.

`certify` makes an isolated run and the folder; `verify` believes nothing of it, judges the recording again and holds
the report against what comes of that. `manifest` is who and what, with the digests of the files; `profiles` says what
is demanded; `signature` ties a folder to a key.
"""
