"""Certification: a folder with the evidence of one run, which anybody verifies offline.

`certify` makes an isolated run, and `sealing` the folder, which it signs. `verifying` believes nothing of it, judges
the recording again (`rejudge`) and holds the report against what comes of that. `manifest` is who and what, with the
digests of the files; `profiles` says what is demanded; `note` is how to make the run again. `other_suite` asks the
suite that made a folder.
"""
