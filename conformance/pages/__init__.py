"""The pages of requirements, written from the ledger, the checks, the fixtures, the faults and the results.

`requirement_facts` collects the facts about a requirement, `examples` formats a golden case, `servers` reads the
results of real servers, and `pages` renders the pages. The glossary is a TOML file in this package.
"""
