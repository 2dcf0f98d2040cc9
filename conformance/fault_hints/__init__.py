"""What the failure of a server looks like: the failed rows of a run held against those of every known fault.

`patterns` has which rows each fault of the bundled server fails, as the suite saw it; `seen` sorts the rows of a run;
`overlap` says how well the two fit; `naming` decides what is named. docs/likeness.md explains it to users.
"""
