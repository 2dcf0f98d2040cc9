/* Growing buffers, error reports and UTF-8: what every other file leans on. */
#ifndef UTIL_H
#define UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t len, cap;
};

/* A refusal: the HTTP status and the text of the JSON error object. */
struct error {
	unsigned status;
	char text[320];
};

/* Memory: requests are bounded by MAX_BODY, so running out means that the
 * machine is in trouble; the process says so and ends rather than limp on. */
void *xmalloc(size_t size);

void buf_add(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void buf_free(struct buf *b);

/* Appends a quoted JSON string.  False when the bytes are not UTF-8, unless
 * `replace` says to put U+FFFD in their place. */
bool buf_json_string(struct buf *b, const char *s, size_t len, bool replace);

/* Both always return false, so that callers can `return fail(...)`. */
bool fail(struct error *err, unsigned status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define bad_request(err, ...) fail(err, 400, __VA_ARGS__)

/* The length of the UTF-8 sequence at p, or 0 when it is none. */
size_t utf8_length(const char *p, const char *end);

#endif
