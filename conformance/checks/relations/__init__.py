"""Relations: what holds of any deployed model, whatever it computes."""
