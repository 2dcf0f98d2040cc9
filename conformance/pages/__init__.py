"""The pages of `docs/requirements`, written from the ledger, the checks, the fixtures, the faults and the results.

`requirement_facts` gathers the facts about a requirement, `examples` shows a golden case, `servers` reads the results
of real servers, `pages` renders it all. Questions and the glossary are TOML files here. Nothing is judged here.
"""
