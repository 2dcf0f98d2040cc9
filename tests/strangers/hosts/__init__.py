"""One honest application behind HTTP servers that are not ours."""
