"""The documentation as a site: pages of the repository, staged in their folders, and built by MkDocs.

tox -e docs
"""
