"""Certification: a folder with the evidence of one run, which anybody can verify offline.

`certify` makes an isolated run; `sealing` writes and signs the folder. `verifying` trusts nothing in it: it judges the
recording again (`rejudge`, `client_rejudge`) and compares the result with the report. `manifest` says who certifies
what, with the digests of the files. `profiles` defines the requirements of each profile. `note` explains how to
reproduce the run. `other_suite` runs the version of the suite that made a folder.
"""
