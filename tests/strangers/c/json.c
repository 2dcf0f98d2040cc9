#include "json.h"

#include <string.h>

#define MAX_DEPTH 64

struct checker {
	const char *p, *end, *why;
	int depth;
};

static bool refuse(struct checker *c, const char *why)
{
	if (!c->why)
		c->why = why;
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char peek(struct checker *c)
{
	while (c->p < c->end && is_space(*c->p))
		c->p++;
	return c->p < c->end ? *c->p : '\0';
}

static int hex4(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char h = p[i];
		int digit = is_digit(h) ? h - '0' : h >= 'a' && h <= 'f' ? h - 'a' + 10 :
			    h >= 'A' && h <= 'F' ? h - 'A' + 10 : -1;

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

static bool check_unicode_escape(struct checker *c)     /* at the u */
{
	int unit = c->end - c->p >= 5 ? hex4(c->p + 1) : -1;

	c->p += 5;
	if (unit < 0)
		return refuse(c, "malformed \\u escape");
	if (unit < 0xd800 || unit > 0xdfff)
		return true;
	/* half a surrogate pair names no character, so has no UTF-8 form */
	int low = c->end - c->p >= 6 && c->p[0] == '\\' && c->p[1] == 'u' ? hex4(c->p + 2) : -1;
	if (unit > 0xdbff || low < 0xdc00 || low > 0xdfff)
		return refuse(c, "lone surrogate in a string");
	c->p += 6;
	return true;
}

static bool check_string(struct checker *c)
{
	for (c->p++; c->p < c->end && *c->p != '"';) {
		if ((unsigned char)*c->p < 0x20)
			return refuse(c, "control character in a string");
		if (*c->p != '\\') {
			size_t n = utf8_length(c->p, c->end);

			if (!n)
				return refuse(c, "a string is not UTF-8");
			c->p += n;
			continue;
		}
		c->p++;
		if (c->p < c->end && *c->p == 'u') {
			if (!check_unicode_escape(c))
				return false;
		} else if (c->p < c->end && *c->p && strchr("\"\\/bfnrt", *c->p)) {
			c->p++;
		} else {
			return refuse(c, "unknown escape in a string");
		}
	}
	if (c->p >= c->end)
		return refuse(c, "unterminated string");
	c->p++;
	return true;
}

static bool check_digits(struct checker *c)
{
	const char *start = c->p;

	while (c->p < c->end && is_digit(*c->p))
		c->p++;
	return c->p > start || refuse(c, "malformed number");
}

static bool check_number(struct checker *c)
{
	if (*c->p == '-')
		c->p++;
	if (c->p < c->end && *c->p == '0')
		c->p++;
	else if (!check_digits(c))
		return false;
	if (c->p < c->end && *c->p == '.') {
		c->p++;
		if (!check_digits(c))
			return false;
	}
	if (c->p < c->end && (*c->p == 'e' || *c->p == 'E')) {
		c->p++;
		if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
			c->p++;
		return check_digits(c);
	}
	return true;
}

static bool check_word(struct checker *c, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
		return refuse(c, "unexpected character");
	c->p += n;
	return true;
}

static bool check_value(struct checker *c);

static bool check_container(struct checker *c, char close)
{
	if (++c->depth > MAX_DEPTH)
		return refuse(c, "nested too deeply");
	c->p++;
	if (peek(c) == close) {
		c->p++;
	} else {
		for (;;) {
			if (close == '}') {
				if (peek(c) != '"')
					return refuse(c, "member name expected");
				if (!check_string(c))
					return false;
				if (peek(c) != ':')
					return refuse(c, "':' expected");
				c->p++;
			}
			if (!check_value(c))
				return false;
			char next = peek(c);
			if (next != ',' && next != close)
				return refuse(c, "',' or closing bracket expected");
			c->p++;
			if (next == close)
				break;
		}
	}
	c->depth--;
	return true;
}

static bool check_value(struct checker *c)
{
	char first = peek(c);

	if (c->p >= c->end)
		return refuse(c, "unexpected end");
	switch (first) {
	case '{': return check_container(c, '}');
	case '[': return check_container(c, ']');
	case '"': return check_string(c);
	case 't': return check_word(c, "true");
	case 'f': return check_word(c, "false");
	case 'n': return check_word(c, "null");
	default:
		if (first == '-' || is_digit(first))
			return check_number(c);
		return refuse(c, "unexpected character");
	}
}

json_value json_check(const char *text, size_t len, const char **why)
{
	struct checker c = { .p = text, .end = text + len };

	peek(&c);
	json_value root = c.p;
	if (check_value(&c)) {
		peek(&c);
		if (c.p < c.end)
			refuse(&c, "text after the value");
	}
	*why = c.why;
	return c.why ? NULL : root;
}

enum json_type json_type(json_value v)
{
	switch (*v) {
	case '{': return JSON_OBJECT;
	case '[': return JSON_ARRAY;
	case '"': return JSON_STRING;
	case 't': return JSON_TRUE;
	case 'f': return JSON_FALSE;
	case 'n': return JSON_NULL;
	default:  return JSON_NUMBER;
	}
}

static const char *skip_space(const char *p)
{
	while (is_space(*p))
		p++;
	return p;
}

static const char *skip_string(const char *p)
{
	for (p++; *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p + 1;
}

size_t json_length(json_value v)
{
	const char *p = v;
	int depth = 0;

	if (*p == '"')
		return (size_t)(skip_string(p) - v);
	if (*p != '[' && *p != '{')
		return strcspn(p, ",]} \t\r\n");
	do {
		if (*p == '"') {
			p = skip_string(p);
			continue;
		}
		depth += (*p == '[' || *p == '{') - (*p == ']' || *p == '}');
		p++;
	} while (depth);
	return (size_t)(p - v);
}

struct json_iter json_each(json_value v)
{
	return (struct json_iter){ skip_space(v + 1), *v == '{' };
}

bool json_next(struct json_iter *it, json_value *key, json_value *value)
{
	const char *p = it->p;

	if (*p == ']' || *p == '}')
		return false;
	if (it->object) {
		if (key)
			*key = p;
		p = skip_space(skip_space(skip_string(p)) + 1);
	}
	*value = p;
	p = skip_space(p + json_length(p));
	it->p = *p == ',' ? skip_space(p + 1) : p;
	return true;
}

static void add_utf8(struct buf *out, unsigned long c)
{
	char s[4];
	size_t n = 0;

	if (c < 0x80) {
		s[n++] = (char)c;
	} else {
		if (c < 0x800) {
			s[n++] = (char)(0xc0 | c >> 6);
		} else {
			if (c < 0x10000) {
				s[n++] = (char)(0xe0 | c >> 12);
			} else {
				s[n++] = (char)(0xf0 | c >> 18);
				s[n++] = (char)(0x80 | (c >> 12 & 0x3f));
			}
			s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		}
		s[n++] = (char)(0x80 | (c & 0x3f));
	}
	buf_add(out, s, n);
}

void json_decode(json_value v, struct buf *out)
{
	static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *p = v + 1;

	while (*p != '"') {
		size_t plain = strcspn(p, "\"\\");

		buf_add(out, p, plain);
		p += plain;
		if (*p != '\\')
			continue;
		p++;
		if (*p != 'u') {
			buf_add(out, &meanings[strchr(escapes, *p) - escapes], 1);
			p++;
			continue;
		}
		unsigned long c = (unsigned long)hex4(p + 1);
		p += 5;
		if (c >= 0xd800 && c <= 0xdbff) {
			c = 0x10000 + ((c - 0xd800) << 10) + ((unsigned long)hex4(p + 2) - 0xdc00);
			p += 6;
		}
		add_utf8(out, c);
	}
}

bool json_equals(json_value v, const char *string)
{
	struct buf b = {0};

	if (json_type(v) != JSON_STRING)
		return false;
	json_decode(v, &b);
	bool same = b.len == strlen(string) && (!b.len || memcmp(b.data, string, b.len) == 0);
	buf_free(&b);
	return same;
}

bool json_integer(json_value v, bool *negative, uint64_t *magnitude)
{
	const char *p = v;
	uint64_t sum = 0;

	if (json_type(v) != JSON_NUMBER)
		return false;
	*negative = *p == '-';
	for (p += *negative; is_digit(*p); p++)
		if (__builtin_mul_overflow(sum, 10u, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)(*p - '0'), &sum))
			return false;
	*magnitude = sum;
	return *p != '.' && *p != 'e' && *p != 'E';
}

bool json_unsigned(json_value v, uint64_t *value)
{
	bool negative;

	return json_integer(v, &negative, value) && (!negative || *value == 0);
}
