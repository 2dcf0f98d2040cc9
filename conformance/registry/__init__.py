"""A registry of certifications: a repository of folders, checked on submission and published as a static site.

`policy` reads the requirements and revocations of its maintainers. `entries` verifies the folders. `checking` reports
why a submission is refused. `static_site` publishes everything for people and programs.
"""
