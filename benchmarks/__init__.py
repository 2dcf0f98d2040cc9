"""What takes how long, as ratios of two things that are measured side by side: `python -m benchmarks`."""
