"""Each datatype as binary data: read from requests, written to answers, and equal to its JSON form."""
