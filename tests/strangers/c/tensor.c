#include "tensor.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "tensors are kept in the byte order of the wire");

/* OIP, Tensor Data Types; BF16 is only mentioned there, two bytes like FP16. */
const struct dtype_info dtypes[] = {
	[DT_BOOL]   = { "BOOL",   1, KIND_BOOL },
	[DT_UINT8]  = { "UINT8",  1, KIND_UNSIGNED },
	[DT_UINT16] = { "UINT16", 2, KIND_UNSIGNED },
	[DT_UINT32] = { "UINT32", 4, KIND_UNSIGNED },
	[DT_UINT64] = { "UINT64", 8, KIND_UNSIGNED },
	[DT_INT8]   = { "INT8",   1, KIND_SIGNED },
	[DT_INT16]  = { "INT16",  2, KIND_SIGNED },
	[DT_INT32]  = { "INT32",  4, KIND_SIGNED },
	[DT_INT64]  = { "INT64",  8, KIND_SIGNED },
	[DT_FP16]   = { "FP16",   2, KIND_FLOAT },
	[DT_FP32]   = { "FP32",   4, KIND_FLOAT },
	[DT_FP64]   = { "FP64",   8, KIND_FLOAT },
	[DT_BYTES]  = { "BYTES",  0, KIND_BYTES },
	[DT_BF16]   = { "BF16",   2, KIND_FLOAT },
};

bool tensor_shape(struct tensor *t, int rank, const uint64_t *shape)
{
	bool overflow = false, empty = false;

	t->rank = rank;
	t->count = 1;
	for (int i = 0; i < rank; i++) {
		t->shape[i] = shape[i];
		empty |= shape[i] == 0;
		overflow |= __builtin_mul_overflow(t->count, shape[i], &t->count);
	}
	if (empty)      /* however large its other dimensions are */
		t->count = 0;
	return empty || !overflow;
}

void *tensor_alloc(struct tensor *t, size_t size)
{
	t->data = t->owned = xmalloc(size);
	t->size = size;
	return t->owned;
}

void tensor_take(struct tensor *t, struct buf *b)
{
	t->owned = b->data;
	t->data = (const uint8_t *)b->data;
	t->size = b->len;
	*b = (struct buf){0};
}

void tensor_free(struct tensor *t)
{
	free(t->owned);
	t->owned = NULL;
}

static float float_of_bits(uint32_t bits)
{
	float f;

	memcpy(&f, &bits, sizeof f);
	return f;
}

static uint16_t bf16_of_double(double value)
{
	float f = (float)value;
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	if (isnan(f))
		return (uint16_t)(bits >> 16 | 0x40);
	/* Rounding to odd first makes the second rounding, to nearest even, exact. */
	if ((double)f != value) {
		if (fabs((double)f) > fabs(value))
			bits--;
		bits |= 1;
	}
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint64_t tensor_unsigned(const struct tensor *t, uint64_t i)
{
	size_t size = dtypes[t->dtype].size;
	uint64_t bits = 0;

	memcpy(&bits, t->data + i * size, size);
	return bits;
}

int64_t tensor_signed(const struct tensor *t, uint64_t i)
{
	int unused = 64 - 8 * (int)dtypes[t->dtype].size;

	return (int64_t)(tensor_unsigned(t, i) << unused) >> unused;
}

double tensor_number(const struct tensor *t, uint64_t i)
{
	uint64_t bits = tensor_unsigned(t, i);
	_Float16 half;
	double value;

	switch (t->dtype) {
	case DT_FP16: memcpy(&half, &bits, sizeof half); return (double)half;
	case DT_BF16: return float_of_bits((uint32_t)bits << 16);
	case DT_FP32: return float_of_bits((uint32_t)bits);
	case DT_FP64: memcpy(&value, &bits, sizeof value); return value;
	default:
		return dtypes[t->dtype].kind == KIND_SIGNED ? (double)tensor_signed(t, i)
							    : (double)bits;
	}
}

void store_number(enum dtype dtype, uint8_t *data, uint64_t i, double value)
{
	float single = (float)value;
	_Float16 half = (_Float16)value;
	uint16_t bf16 = bf16_of_double(value);
	const void *bits = dtype == DT_FP16 ? (void *)&half : dtype == DT_BF16 ? (void *)&bf16 :
			   dtype == DT_FP32 ? (void *)&single : (void *)&value;

	memcpy(data + i * dtypes[dtype].size, bits, dtypes[dtype].size);
}

void bytes_add(struct buf *b, const void *data, size_t len)
{
	uint32_t prefix = (uint32_t)len;

	buf_add(b, &prefix, sizeof prefix);
	buf_add(b, data, len);
}

const char *bytes_next(const uint8_t **p, uint32_t *len)
{
	const char *start = (const char *)*p + sizeof *len;

	memcpy(len, *p, sizeof *len);
	*p += sizeof *len + *len;
	return start;
}

static const char *check_bytes(const struct tensor *t)
{
	size_t left = t->size;
	const uint8_t *p = t->data;
	uint32_t len;

	for (uint64_t i = 0; i < t->count; i++) {
		if (left < sizeof len)
			return "the binary data end before the last element of the shape";
		memcpy(&len, p, sizeof len);
		left -= sizeof len;
		if (len > left)
			return "an element's length goes beyond the binary data";
		left -= len;
		p += sizeof len + len;
	}
	return left ? "the binary data hold more elements than the shape" : NULL;
}

const char *tensor_from_binary(struct tensor *t, const uint8_t *data, size_t size)
{
	uint64_t expected;

	t->data = data;
	t->size = size;
	if (t->dtype == DT_BYTES)
		return check_bytes(t);
	if (__builtin_mul_overflow(t->count, dtypes[t->dtype].size, &expected) || expected != size)
		return "the size of the binary data contradicts shape and datatype";
	/* Binary Tensor Request: "true is a single byte with value 1 and false is a
	 * single byte with value 0". */
	if (t->dtype == DT_BOOL)
		for (size_t i = 0; i < size; i++)
			if (data[i] > 1)
				return "a BOOL byte is neither 0 nor 1";
	return NULL;
}

static const char *add_integer(enum dtype dtype, json_value v, struct buf *out)
{
	const struct dtype_info *info = &dtypes[dtype];
	bool negative;
	uint64_t n, max = UINT64_MAX >> (64 - 8 * info->size);

	if (json_type(v) != JSON_NUMBER)
		return "an integer was expected";
	if (!json_integer(v, &negative, &n))
		return "a number is no integer of its datatype";
	if (info->kind == KIND_SIGNED)
		max = max / 2 + negative;
	else if (negative)
		max = 0;
	if (n > max)
		return "a number is out of the range of its datatype";
	if (negative)
		n = 0 - n;
	buf_add(out, &n, info->size);
	return NULL;
}

static const char *add_float(enum dtype dtype, json_value v, struct buf *out)
{
	uint8_t bytes[8];

	if (json_type(v) != JSON_NUMBER)
		return "a number was expected";
	/* straight to single precision: rounding twice could miss by one */
	double value = dtype == DT_FP32 ? (double)strtof(v, NULL) : strtod(v, NULL);
	store_number(dtype, bytes, 0, value);
	struct tensor stored = { .dtype = dtype, .data = bytes };
	if (isinf(tensor_number(&stored, 0)))
		return "a number is out of the range of its datatype";
	buf_add(out, bytes, dtypes[dtype].size);
	return NULL;
}

/* OIP, Tensor Data, lets the server coerce or refuse an unexpected value: it
 * refuses, since 1 for true or "7" for 7 are more likely mistakes. */
static const char *add_element(enum dtype dtype, json_value v, struct buf *out)
{
	enum json_type type = json_type(v);
	size_t start = out->len;
	uint8_t flag = type == JSON_TRUE;
	uint32_t len = 0;

	if (type == JSON_ARRAY)
		return "nested deeper than the shape, or flat and nested at once";
	switch (dtypes[dtype].kind) {
	case KIND_BOOL:
		if (type != JSON_TRUE && type != JSON_FALSE)
			return "true or false was expected";
		buf_add(out, &flag, 1);
		return NULL;
	case KIND_BYTES:
		if (type != JSON_STRING)
			return "a string was expected";
		buf_add(out, &len, sizeof len);
		json_decode(v, out);
		len = (uint32_t)(out->len - start - sizeof len);
		memcpy(out->data + start, &len, sizeof len);
		return NULL;
	case KIND_FLOAT:
		return add_float(dtype, v, out);
	default:
		return add_integer(dtype, v, out);
	}
}

/* Reads an array of `expected` elements, or of rows while `rows` is above 0. */
static const char *add_array(const struct tensor *t, json_value array, uint64_t expected,
			     int rows, struct buf *out)
{
	struct json_iter it = json_each(array);
	const char *why = NULL;
	json_value v;
	uint64_t n = 0;

	for (; !why && json_next(&it, NULL, &v); n++) {
		if (n == expected)
			return "more elements than the shape says";
		if (rows == 0)
			why = add_element(t->dtype, v, out);
		else if (json_type(v) != JSON_ARRAY)
			why = "flat and nested at once";
		else
			why = add_array(t, v, t->shape[t->rank - rows], rows - 1, out);
	}
	if (!why && n < expected)
		why = "fewer elements than the shape says";
	return why;
}

const char *tensor_from_json(struct tensor *t, json_value data)
{
	struct buf b = {0};
	json_value first;

	/* "Tensor data given explicitly is provided in a JSON array" */
	if (json_type(data) != JSON_ARRAY)
		return "\"data\" is not an array";
	struct json_iter it = json_each(data);
	/* "... in their nature multi-dimensional representation, or as a flattened
	 * one-dimensional representation": the first element tells which. */
	bool nested = t->rank > 1 && json_next(&it, NULL, &first) && json_type(first) == JSON_ARRAY;
	const char *why = nested ? add_array(t, data, t->shape[0], t->rank - 1, &b)
				 : add_array(t, data, t->count, 0, &b);
	tensor_take(t, &b);
	return why;
}

void number_text(const struct tensor *t, uint64_t i, char text[NUMBER_TEXT])
{
	bool single = t->dtype == DT_FP32;
	int digits = single ? FLT_DIG : DBL_DIG, most = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
	double value;

	switch (dtypes[t->dtype].kind) {
	case KIND_SIGNED:
		snprintf(text, NUMBER_TEXT, "%" PRId64, tensor_signed(t, i));
		return;
	case KIND_FLOAT:
		value = tensor_number(t, i);
		do
			snprintf(text, NUMBER_TEXT, "%.*g", digits, value);
		while (++digits <= most &&
		       (single ? (double)strtof(text, NULL) : strtod(text, NULL)) != value);
		return;
	default:
		snprintf(text, NUMBER_TEXT, "%" PRIu64, tensor_unsigned(t, i));
	}
}

const char *tensor_to_json(const struct tensor *t, struct buf *out)
{
	enum kind kind = dtypes[t->dtype].kind;
	const uint8_t *p = t->data;
	char text[NUMBER_TEXT];
	uint32_t len;

	buf_puts(out, "[");
	for (uint64_t i = 0; i < t->count; i++) {
		if (i)
			buf_puts(out, ",");
		if (kind == KIND_BYTES) {
			const char *s = bytes_next(&p, &len);
			if (!buf_json_string(out, s, len, false))
				return "an element is not UTF-8 and cannot be JSON; ask for binary data";
			continue;
		}
		if (kind == KIND_BOOL) {
			buf_puts(out, t->data[i] ? "true" : "false");
			continue;
		}
		if (kind == KIND_FLOAT && !isfinite(tensor_number(t, i)))
			return "NaN or infinity cannot be JSON; ask for binary data";
		number_text(t, i, text);
		buf_puts(out, text);
		/* else readers that tell integers apart lose the sign of -0.0 */
		if (kind == KIND_FLOAT && !strpbrk(text, ".e"))
			buf_puts(out, ".0");
	}
	buf_puts(out, "]");
	return NULL;
}
