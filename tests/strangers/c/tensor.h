/* Tensors and their datatypes.  A tensor is kept as the binary extension sends
 * it: little-endian, row-major, unpadded; BYTES elements with their lengths. */
#ifndef TENSOR_H
#define TENSOR_H

#include "json.h"

#define MAX_RANK 6

enum dtype {
	DT_BOOL, DT_UINT8, DT_UINT16, DT_UINT32, DT_UINT64, DT_INT8, DT_INT16, DT_INT32,
	DT_INT64, DT_FP16, DT_FP32, DT_FP64, DT_BYTES, DT_BF16
};

enum kind { KIND_BOOL, KIND_UNSIGNED, KIND_SIGNED, KIND_FLOAT, KIND_BYTES };

struct dtype_info {
	const char *name;
	size_t size;
	enum kind kind;
};

extern const struct dtype_info dtypes[];

struct tensor {
	enum dtype dtype;
	int rank;
	uint64_t shape[MAX_RANK];
	uint64_t count;         /* the product of the shape */
	const uint8_t *data;    /* perhaps in another tensor or in the request, so unaligned */
	size_t size;            /* of data, in bytes */
	void *owned;            /* what tensor_free frees, or NULL */
};

/* False when the product of the dimensions overflows. */
bool tensor_shape(struct tensor *t, int rank, const uint64_t *shape);
void *tensor_alloc(struct tensor *t, size_t size);
void tensor_take(struct tensor *t, struct buf *b);
void tensor_free(struct tensor *t);

/* These two give NULL, or why the data cannot be those of the tensor. */
const char *tensor_from_binary(struct tensor *t, const uint8_t *data, size_t size);
const char *tensor_from_json(struct tensor *t, json_value data);
/* Appends the flat JSON array, or says why there is none. */
const char *tensor_to_json(const struct tensor *t, struct buf *out);

uint64_t tensor_unsigned(const struct tensor *t, uint64_t i);
int64_t tensor_signed(const struct tensor *t, uint64_t i);
double tensor_number(const struct tensor *t, uint64_t i);       /* any but BYTES */
void store_number(enum dtype dtype, uint8_t *data, uint64_t i, double value);

/* One BYTES element: appends it, or steps over it. */
void bytes_add(struct buf *b, const void *data, size_t len);
const char *bytes_next(const uint8_t **p, uint32_t *len);

#define NUMBER_TEXT 40
/* The shortest text that reads back as the same value of the datatype. */
void number_text(const struct tensor *t, uint64_t i, char text[NUMBER_TEXT]);

#endif
