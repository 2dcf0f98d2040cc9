"""Classification: an output as its highest elements, each a text `value:index[:label]`."""
