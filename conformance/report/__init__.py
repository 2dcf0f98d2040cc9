"""Reports of a finished run, for terminals, pages, badges and other programs."""
