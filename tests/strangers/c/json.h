/* A strict JSON reader (RFC 8259) without a tree: the text is checked once as
 * a whole, and from then on a value is a pointer to its first character.  So
 * tensors of millions of numbers cost no node each, and a number stays the
 * text it was: INT64 and UINT64 are exact, decimals round once. */
#ifndef JSON_H
#define JSON_H

#include "util.h"

typedef const char *json_value;

enum json_type {
	JSON_OBJECT, JSON_ARRAY, JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL
};

struct json_iter {
	const char *p;
	bool object;
};

/* The root value of a valid text; NULL, and why, of any other. */
json_value json_check(const char *text, size_t len, const char **why);

enum json_type json_type(json_value v);
size_t json_length(json_value v);       /* of the text of the value */

struct json_iter json_each(json_value array_or_object);
bool json_next(struct json_iter *it, json_value *key, json_value *value);

void json_decode(json_value string, struct buf *out);
bool json_equals(json_value v, const char *string);

/* False unless v is written as an integer of at most 64 bits. */
bool json_integer(json_value v, bool *negative, uint64_t *magnitude);
bool json_unsigned(json_value v, uint64_t *value);

#endif
