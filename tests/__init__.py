"""What proves the suite. Helpers of many tests stand in `support`."""
