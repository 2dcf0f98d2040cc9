"""Certification: a folder with the evidence of one run, which anybody verifies offline.

`certify` makes an isolated run, and `sealing` the folder. `verifying` believes nothing of it, judges the recording
again (`rejudge`) and holds the report against what comes of that. `manifest` is who and what, with the digests of the
files; `profiles` says what is demanded; `label` holds the product against what the server reports; `signature` ties a
folder to a key; `note` is how to make the run again. `with_suite` asks the suite that made a folder; `today`, what this
one would say.
"""
