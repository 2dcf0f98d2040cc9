"""A registry of certifications: a repository of folders, checked as they come in, and shown as a static site.

`policy` is what its keepers demand, and what they have revoked; `entries` the folders, each verified; `checking` says
why one is not taken; `static_site` is all of it for people and programs.
"""
