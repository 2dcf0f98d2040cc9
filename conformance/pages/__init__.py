"""The pages of `docs/requirements`, written from the ledger, the checks, the fixtures, the faults and the results.

`subjects` gathers what there is to say of a requirement, `examples` shows a golden case, `servers` reads what real
servers do, `pages` writes it all down. Questions and the glossary are data beside them. Nothing is judged here.
"""
