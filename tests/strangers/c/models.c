#include "models.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void same_shape(struct tensor *out, const struct tensor *in)
{
	tensor_shape(out, in->rank, in->shape);
}

static void vector(struct tensor *out, uint64_t n)
{
	tensor_shape(out, 1, &n);
}

static void matrix(struct tensor *out, uint64_t rows, uint64_t columns)
{
	tensor_shape(out, 2, (uint64_t[]){ rows, columns });
}

static uint8_t *alloc_elements(struct tensor *out)
{
	return tensor_alloc(out, out->count * dtypes[out->dtype].size);
}

static bool same_length(const struct tensor *a, const struct tensor *b, struct error *err)
{
	return a->count == b->count ||
	       bad_request(err, "the inputs differ in length: %" PRIu64 " and %" PRIu64,
			   a->count, b->count);
}

static void copy(const struct tensor *in, struct tensor *out)
{
	same_shape(out, in);
	out->data = in->data;
	out->size = in->size;
}

static bool identity1(const struct tensor *in, struct tensor *out, struct error *err)
{
	(void)err;
	copy(&in[0], &out[0]);
	return true;
}

static bool identity2(const struct tensor *in, struct tensor *out, struct error *err)
{
	copy(&in[1], &out[1]);
	return identity1(in, out, err);
}

static bool identity4(const struct tensor *in, struct tensor *out, struct error *err)
{
	copy(&in[3], &out[3]);
	copy(&in[2], &out[2]);
	return identity2(in, out, err);
}

static bool cast(const struct tensor *in, struct tensor *out, struct error *err)
{
	(void)err;
	same_shape(out, in);
	uint8_t *to = alloc_elements(out);
	for (uint64_t i = 0; i < in->count; i++)
		store_number(out->dtype, to, i, tensor_number(in, i));
	return true;
}

static bool emit(const struct tensor *in, struct tensor *out, struct error *err)
{
	int64_t numbers = tensor_signed(in, 0), texts = tensor_signed(in, 1);
	struct buf b = {0};
	char text[16];

	if (numbers < 0 || texts < 0)
		return bad_request(err, "COUNTS must not be negative");
	if (numbers > MAX_OUTPUT / 4 || texts > MAX_OUTPUT / 16)
		return bad_request(err, "COUNTS asks for more than this server returns");
	vector(&out[0], (uint64_t)numbers);
	vector(&out[1], (uint64_t)texts);
	for (int32_t i = 1; i <= numbers; i++)
		buf_add(&b, &i, sizeof i);
	tensor_take(&out[0], &b);
	for (int64_t i = 1; i <= texts; i++)
		bytes_add(&b, text, (size_t)snprintf(text, sizeof text, "t%d", (int)i));
	tensor_take(&out[1], &b);
	return true;
}

static bool add_sub(const struct tensor *in, struct tensor *out, struct error *err)
{
	const struct tensor *b = &in[0], *a = &in[1];

	if (!same_length(a, b, err))
		return false;
	same_shape(&out[0], a);
	same_shape(&out[1], a);
	uint8_t *sum = alloc_elements(&out[0]), *difference = alloc_elements(&out[1]);
	for (uint64_t i = 0; i < a->count; i++) {
		int32_t x = (int32_t)tensor_signed(a, i), y = (int32_t)tensor_signed(b, i), s, d;

		if (__builtin_add_overflow(x, y, &s) || __builtin_sub_overflow(x, y, &d))
			return bad_request(err, "element %" PRIu64 " overflows INT32", i);
		memcpy(sum + 4 * i, &s, sizeof s);
		memcpy(difference + 4 * i, &d, sizeof d);
	}
	return true;
}

static bool string_length(const struct tensor *in, struct tensor *out, struct error *err)
{
	const uint8_t *p = in->data;
	uint32_t len;

	(void)err;
	same_shape(out, in);
	uint8_t *to = alloc_elements(out);
	for (uint64_t i = 0; i < in->count; i++) {
		bytes_next(&p, &len);
		memcpy(to + 4 * i, &len, sizeof len);
	}
	return true;
}

static bool weighted_sum(const struct tensor *in, struct tensor *out, struct error *err)
{
	int64_t sum = 0, term;

	for (uint64_t i = 0; i < in->count; i++)
		if (__builtin_mul_overflow(i + 1, tensor_signed(in, i), &term) ||
		    __builtin_add_overflow(sum, term, &sum))
			return bad_request(err, "the sum overflows INT64");
	vector(out, 1);
	memcpy(alloc_elements(out), &sum, sizeof sum);
	return true;
}

static bool number_and_text(const struct tensor *in, struct tensor *out, struct error *err)
{
	struct buf b = {0};
	char text[NUMBER_TEXT];

	(void)err;
	copy(in, &out[0]);
	same_shape(&out[1], in);
	for (uint64_t i = 0; i < in->count; i++) {
		number_text(in, i, text);
		bytes_add(&b, text, strlen(text));
	}
	tensor_take(&out[1], &b);
	return true;
}

/* Row k is [flags[k], element k of values]. */
static void pair_rows(const struct tensor *flags, const struct tensor *values, struct tensor *out)
{
	matrix(out, flags->count, 2);
	uint8_t *to = alloc_elements(out);
	for (uint64_t k = 0; k < flags->count; k++) {
		store_number(out->dtype, to, 2 * k, tensor_number(flags, k));
		store_number(out->dtype, to, 2 * k + 1, tensor_number(values, k));
	}
}

static bool documented_binary(const struct tensor *in, struct tensor *out, struct error *err)
{
	(void)err;
	pair_rows(&in[1], &in[0], out);
	return true;
}

static bool documented_mixed(const struct tensor *in, struct tensor *out, struct error *err)
{
	(void)err;
	pair_rows(&in[2], &in[0], &out[0]);
	same_shape(&out[1], &in[0]);
	uint8_t *sum = alloc_elements(&out[1]);
	for (uint64_t i = 0; i < in[0].count; i++)
		store_number(DT_FP32, sum, i, tensor_number(&in[0], i) + tensor_number(&in[1], i));
	return true;
}

static bool documented_all_outputs(const struct tensor *in, struct tensor *out, struct error *err)
{
	double a = tensor_number(in, 0), b = tensor_number(in, 1);
	const double rows[] = { a, b, b, a, 0, 0 };

	(void)err;
	matrix(&out[0], 3, 2);
	matrix(&out[1], 2, 2);
	for (int k = 0; k < 2; k++) {
		uint8_t *to = alloc_elements(&out[k]);
		for (uint64_t i = 0; i < out[k].count; i++)
			store_number(out[k].dtype, to, i, rows[i]);
	}
	return true;
}

static bool documented_raw(const struct tensor *in, struct tensor *out, struct error *err)
{
	(void)err;
	for (int k = 0; k < 2; k++) {
		matrix(&out[k], 3, 1);
		memcpy(alloc_elements(&out[k]), in->data + 4 * k, 12);
	}
	return true;
}

static bool documented_scores(const struct tensor *in, struct tensor *out, struct error *err)
{
	static const float scores[] = { 1.1f, 3.3f, 0.5f, 2.4f };

	vector(out, 4);
	uint8_t *to = alloc_elements(out);
	for (uint64_t k = 0; k < 4; k++) {
		uint64_t n = tensor_unsigned(in, k);

		if (n < 1 || n > 4)
			return bad_request(err, "the elements of input0 must be 1 to 4");
		memcpy(to + 4 * k, &scores[n - 1], sizeof(float));
	}
	return true;
}

static const char *const animals[] = { "cat", "dog", "bird", "fish", NULL };
static const char *const two_animals[] = { "cat", "dog", NULL };
static const char *const odd_labels[] = { "a:b:c", "two words", "Füße", "猫", NULL };
static const char *const levels[] = { "low", "middle", "high", NULL };
static const char *const index_labels[] = {
	"index_0_label", "index_1_label", "index_2_label", "index_3_label", NULL
};

/* T(name, dtype, dimensions...), or S without dimensions, L with labels */
#define T(name, dtype, ...) \
	{ name, DT_##dtype, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int), { __VA_ARGS__ }, NULL }
#define S(name, dtype) { name, DT_##dtype, 0, {0}, NULL }
#define L(name, dtype, labels, ...) \
	{ name, DT_##dtype, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int), { __VA_ARGS__ }, labels }
#define IDENTITY(name, dtype, ...) \
	{ name, identity1, false, { T("INPUT", dtype, __VA_ARGS__) }, { T("OUTPUT", dtype, __VA_ARGS__) } }
#define CAST(name, batching, from, to, ...) \
	{ name, cast, batching, { T("INPUT", from, __VA_ARGS__) }, { T("OUTPUT", to, __VA_ARGS__) } }
#define SCORES(name, batching, labels, ...) \
	{ name, identity1, batching, { T("INPUT", FP32, __VA_ARGS__) }, \
	  { L("SCORES", FP32, labels, __VA_ARGS__) } }

const struct model models[] = {
	IDENTITY("identity_bool", BOOL, -1),
	IDENTITY("identity_uint8", UINT8, -1),
	IDENTITY("identity_uint16", UINT16, -1),
	IDENTITY("identity_uint32", UINT32, -1),
	IDENTITY("identity_uint64", UINT64, -1),
	IDENTITY("identity_int8", INT8, -1),
	IDENTITY("identity_int16", INT16, -1),
	IDENTITY("identity_int32", INT32, -1),
	IDENTITY("identity_int64", INT64, -1),
	IDENTITY("identity_fp16", FP16, -1),
	IDENTITY("identity_fp32", FP32, -1),
	IDENTITY("identity_fp64", FP64, -1),
	IDENTITY("identity_bytes", BYTES, -1),
	IDENTITY("identity_bf16", BF16, -1),
	{ "rank0", identity1, false, { S("INPUT", INT32) }, { S("OUTPUT", INT32) } },
	IDENTITY("rank2", INT32, -1, -1),
	IDENTITY("rank3", INT16, -1, -1, -1),
	IDENTITY("rank4", FP64, -1, -1, -1, -1),
	IDENTITY("rank2_bytes", BYTES, -1, -1),
	{ "batching", identity1, true, { T("INPUT", INT32, 3) }, { T("OUTPUT", INT32, 3) } },
	IDENTITY("fixed", INT32, 2, 3),
	{ "multi", identity4, false,
	  { T("IN_INT64", INT64, -1), T("IN_BOOL", BOOL, -1),
	    T("IN_FP32", FP32, -1), T("IN_BYTES", BYTES, -1) },
	  { T("OUT_INT64", INT64, -1), T("OUT_BOOL", BOOL, -1),
	    T("OUT_FP32", FP32, -1), T("OUT_BYTES", BYTES, -1) } },
	{ "emit", emit, false, { T("COUNTS", INT32, 2) },
	  { T("NUMBERS", INT32, -1), T("TEXTS", BYTES, -1) } },
	CAST("cast_int32_fp32", false, INT32, FP32, -1),
	CAST("cast_fp16_fp32", false, FP16, FP32, -1),
	CAST("cast_fp32_fp16", false, FP32, FP16, -1),
	CAST("cast_bf16_fp32", false, BF16, FP32, -1),
	CAST("cast_fp32_bf16", false, FP32, BF16, -1),
	{ "add_sub", add_sub, false, { T("B", INT32, -1), T("A", INT32, -1) },
	  { T("SUM", INT32, -1), T("DIFFERENCE", INT32, -1) } },
	{ "string_length", string_length, false, { T("INPUT", BYTES, -1) },
	  { T("LENGTH", INT32, -1) } },
	{ "weighted_sum", weighted_sum, false, { T("INPUT", INT32, -1, -1) },
	  { T("OUTPUT", INT64, 1) } },
	CAST("raw_fixed", false, INT32, FP32, 2, 2),
	CAST("raw_variable", false, INT32, FP32, -1, 2),
	IDENTITY("raw_middle", INT16, 2, -1, 3),
	IDENTITY("raw_two_variable", INT32, -1, -1),
	IDENTITY("raw_bytes_one", BYTES, 1),
	IDENTITY("raw_bytes_two", BYTES, 2),
	IDENTITY("raw_bytes_variable", BYTES, -1),
	{ "raw_two_inputs", identity2, false, { T("INPUT0", INT32, -1), T("INPUT1", INT32, -1) },
	  { T("OUTPUT0", INT32, -1), T("OUTPUT1", INT32, -1) } },
	{ "raw_two_outputs", number_and_text, false, { T("INPUT", INT32, -1) },
	  { T("NUMBER", INT32, -1), T("TEXT", BYTES, -1) } },
	CAST("raw_batching", true, INT32, FP32, 4),
	CAST("raw_batching_variable", true, INT32, FP32, -1),
	SCORES("scores", false, NULL, 4),
	SCORES("scores_labelled", false, animals, 4),
	SCORES("scores_some_labels", false, two_animals, 4),
	SCORES("scores_odd_labels", false, odd_labels, 4),
	SCORES("scores_batching", true, NULL, 4),
	SCORES("scores_batching_labelled", true, animals, 4),
	SCORES("scores_rank2", false, NULL, 2, 3),
	SCORES("scores_batching_rank2", true, animals, 2, 2),
	{ "scores_two_outputs", identity2, false, { T("IN_SCORES", FP32, 4), T("IN_RANKS", INT32, 3) },
	  { T("SCORES", FP32, 4), L("RANKS", INT32, levels, 3) } },
	{ "documented_binary", documented_binary, false,
	  { T("input0", UINT32, 2, 2), T("input1", BOOL, 3) }, { T("output0", FP32, 3, 2) } },
	{ "documented_mixed", documented_mixed, false,
	  { T("input0", FP16, 2, 2), T("input1", UINT32, 2, 2), T("input2", BOOL, 3) },
	  { T("output0", FP16, 3, 2), T("output1", FP32, 2, 2) } },
	{ "documented_all_outputs", documented_all_outputs, false,
	  { T("input_tensor", FP32, 1, 2) },
	  { T("output_tensor0", FP16, 3, 2), T("output_tensor1", FP32, 2, 2) } },
	{ "documented_raw", documented_raw, false, { T("input", FP32, 4) },
	  { T("output0", FP32, 3, 1), T("output1", FP32, 3, 1) } },
	{ "documented_scores", documented_scores, false, { T("input0", UINT32, 2, 2) },
	  { T("output0", FP32, 4) } },
	{ "documented_scores_labelled", documented_scores, false, { T("input0", UINT32, 2, 2) },
	  { L("output0", FP32, index_labels, 4) } },
};

const size_t model_count = sizeof models / sizeof *models;

const struct model *model_find(const char *name)
{
	for (size_t i = 0; i < model_count; i++)
		if (strcmp(models[i].name, name) == 0)
			return &models[i];
	return NULL;
}
