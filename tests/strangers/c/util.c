#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void out_of_memory(void)
{
	fputs("out of memory\n", stderr);
	abort();
}

void *xmalloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		out_of_memory();
	return p;
}

static void buf_reserve(struct buf *b, size_t more)
{
	if (b->cap - b->len >= more)
		return;
	if (more > SIZE_MAX / 4 || b->cap > SIZE_MAX / 4)
		out_of_memory();
	b->cap = b->cap * 2 > b->len + more ? b->cap * 2 : b->len + more + 256;
	b->data = realloc(b->data, b->cap);
	if (!b->data)
		out_of_memory();
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	if (!len)
		return;
	buf_reserve(b, len);
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void buf_puts(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_printf(struct buf *b, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	int n = vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	if (n > 0)
		buf_add(b, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

bool buf_json_string(struct buf *b, const char *s, size_t len, bool replace)
{
	const char *end = s + len;

	buf_puts(b, "\"");
	while (s < end) {
		unsigned char c = (unsigned char)*s;
		size_t n = utf8_length(s, end);

		if (n == 0 && !replace)
			return false;
		if (n == 0)
			buf_puts(b, "\\ufffd"), n = 1;
		else if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < 0x20)
			buf_printf(b, "\\u%04x", c);
		else
			buf_add(b, s, n);
		s += n;
	}
	buf_puts(b, "\"");
	return true;
}

bool fail(struct error *err, unsigned status, const char *format, ...)
{
	va_list ap;

	err->status = status;
	va_start(ap, format);
	vsnprintf(err->text, sizeof err->text, format, ap);
	va_end(ap);
	return false;
}

size_t utf8_length(const char *s, const char *end)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 :
		   p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	if ((size_t)(end - s) < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	/* overlong forms, surrogates, beyond U+10FFFF */
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}
