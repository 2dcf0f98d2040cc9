"""The words that everything else uses: requirements, checks, outcomes, results, verdict."""
