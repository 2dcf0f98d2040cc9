"""One check on one row, and the session around it: target, survey, evidence, baseline."""
