"""What can be expected of a reply, and whose fault it is when it is not met."""
