#include "infer.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct requested_output {
	int index;      /* in the model's outputs */
	bool binary;
	uint64_t classes;       /* 0: the tensor itself */
};

/* One request on its way through the server. */
struct job {
	const struct model *model;
	json_value id;  /* the text as it came, or NULL */
	struct tensor in[MAX_TENSORS], out[MAX_TENSORS];
	struct requested_output requested[MAX_TENSORS];
	int requested_count;
	const uint8_t *binary;  /* what no input has taken yet */
	size_t binary_left;
	struct error *err;
};

/* Finds members by name; what the protocol does not know is left alone (its own
 * examples carry a "model_name"), but a name given twice has no one meaning. */
static bool read_members(json_value object, const char *what, int count,
			 const char *const names[], json_value values[], struct error *err)
{
	struct json_iter it;
	json_value key, value;

	memset(values, 0, (size_t)count * sizeof *values);
	if (json_type(object) != JSON_OBJECT)
		return bad_request(err, "%s must be an object", what);
	for (it = json_each(object); json_next(&it, &key, &value);)
		for (int i = 0; i < count; i++) {
			if (!json_equals(key, names[i]))
				continue;
			if (values[i])
				return bad_request(err, "\"%s\" occurs twice in %s", names[i], what);
			values[i] = value;
		}
	return true;
}

/* Parameters: "the value is a $string, $number, or $boolean". */
static bool read_parameters(json_value object, int count, const char *const names[],
			    json_value values[], struct error *err)
{
	json_value value;

	if (!object) {
		memset(values, 0, (size_t)count * sizeof *values);
		return true;
	}
	if (!read_members(object, "\"parameters\"", count, names, values, err))
		return false;
	for (struct json_iter it = json_each(object); json_next(&it, NULL, &value);) {
		enum json_type type = json_type(value);

		if (type == JSON_OBJECT || type == JSON_ARRAY || type == JSON_NULL)
			return bad_request(err, "a parameter must be a string, number or boolean");
	}
	return true;
}

static bool read_flag(json_value v, const char *name, bool *flag, struct error *err)
{
	if (!v)
		return true;
	*flag = json_type(v) == JSON_TRUE;
	return *flag || json_type(v) == JSON_FALSE ||
	       bad_request(err, "parameter \"%s\" must be true or false", name);
}

/* The index of the tensor that a "name" member names, or -1. */
static int find_spec(const struct tensor_spec *specs, json_value name)
{
	for (int i = 0; name && specs[i].name; i++)
		if (json_equals(name, specs[i].name))
			return i;
	return -1;
}

static bool unknown_tensor(const char *what, json_value name, struct error *err)
{
	struct buf b = {0};

	if (!name || json_type(name) != JSON_STRING)
		return bad_request(err, "an %s needs a \"name\" that is a string", what);
	json_decode(name, &b);
	bad_request(err, "the model has no %s '%.*s'", what, b.len < 100 ? (int)b.len : 100,
		    b.data ? b.data : "");
	buf_free(&b);
	return false;
}

static bool read_shape(struct job *job, const struct tensor_spec *spec, json_value shape,
		       struct tensor *t)
{
	struct error *err = job->err;
	int batch = job->model->batching, rank = 0;
	uint64_t dims[MAX_RANK];
	json_value v;

	if (!shape || json_type(shape) != JSON_ARRAY)
		return bad_request(err, "input '%s' needs a \"shape\" that is an array", spec->name);
	for (struct json_iter it = json_each(shape); json_next(&it, NULL, &v); rank++) {
		uint64_t dim;

		/* "Each dimension must be an integer representable as an unsigned
		 * 64-bit integer value." */
		if (!json_unsigned(v, &dim))
			return bad_request(err, "input '%s': a dimension is no unsigned 64-bit integer",
					   spec->name);
		if (rank == spec->rank + batch)
			return bad_request(err, "input '%s' has %d dimensions", spec->name,
					   spec->rank + batch);
		if (batch && rank == 0 && (dim < 1 || dim > MAX_BATCH))
			return bad_request(err, "input '%s': the batch must be 1 to %d", spec->name,
					   MAX_BATCH);
		int64_t fixed = rank < batch ? -1 : spec->shape[rank - batch];
		if (fixed >= 0 && dim != (uint64_t)fixed)
			return bad_request(err, "input '%s': dimension %d must be %" PRId64,
					   spec->name, rank, fixed);
		dims[rank] = dim;
	}
	if (rank != spec->rank + batch)
		return bad_request(err, "input '%s' has %d dimensions", spec->name, spec->rank + batch);
	if (!tensor_shape(t, rank, dims))
		return bad_request(err, "input '%s': the shape is too large", spec->name);
	return true;
}

static bool read_data(struct job *job, const char *name, struct tensor *t, json_value data,
		      json_value size_parameter)
{
	struct error *err = job->err;
	uint64_t size;
	const char *why;

	if (!data == !size_parameter)
		return bad_request(err, "input '%s' needs one of \"data\" and \"binary_data_size\"", name);
	if (data) {
		why = tensor_from_json(t, data);
	} else {
		if (!json_unsigned(size_parameter, &size) || size > INT64_MAX)
			return bad_request(err, "input '%s': \"binary_data_size\" must be a size in bytes",
					   name);
		if (size > job->binary_left)
			return bad_request(err, "input '%s': %" PRIu64 " bytes of binary data announced, "
					   "%zu left after the JSON object", name, size, job->binary_left);
		why = tensor_from_binary(t, job->binary, size);
		job->binary += size;
		job->binary_left -= size;
	}
	return !why || bad_request(err, "input '%s': %s", name, why);
}

static bool read_input(struct job *job, json_value input, bool given[])
{
	static const char *const names[] = { "name", "shape", "datatype", "parameters", "data" };
	static const char *const parameter_names[] = { "binary_data_size" };
	json_value m[5], size;

	if (!read_members(input, "an input", 5, names, m, job->err) ||
	    !read_parameters(m[3], 1, parameter_names, &size, job->err))
		return false;
	int i = find_spec(job->model->in, m[0]);
	if (i < 0)
		return unknown_tensor("input", m[0], job->err);
	const struct tensor_spec *spec = &job->model->in[i];
	if (given[i])
		return bad_request(job->err, "input '%s' is given twice", spec->name);
	given[i] = true;
	if (!m[2] || !json_equals(m[2], dtypes[spec->dtype].name))
		return bad_request(job->err, "input '%s' needs the \"datatype\" %s", spec->name,
				   dtypes[spec->dtype].name);
	return read_shape(job, spec, m[1], &job->in[i]) &&
	       read_data(job, spec->name, &job->in[i], m[4], size);
}

static bool read_output(struct job *job, json_value output, bool binary)
{
	static const char *const names[] = { "name", "parameters" };
	static const char *const parameter_names[] = { "binary_data", "classification" };
	struct requested_output r = { .binary = binary };
	json_value m[2], p[2];

	if (!read_members(output, "an output", 2, names, m, job->err) ||
	    !read_parameters(m[1], 2, parameter_names, p, job->err))
		return false;
	r.index = find_spec(job->model->out, m[0]);
	if (r.index < 0)
		return unknown_tensor("output", m[0], job->err);
	for (int i = 0; i < job->requested_count; i++)
		if (job->requested[i].index == r.index)
			return bad_request(job->err, "output '%s' is requested twice",
					   job->model->out[r.index].name);
	/* "one or more classifications be returned": none is not one of the choices */
	if (p[1] && (!json_unsigned(p[1], &r.classes) || r.classes == 0))
		return bad_request(job->err, "parameter \"classification\" must be a positive integer");
	if (!read_flag(p[0], "binary_data", &r.binary, job->err))
		return false;
	job->requested[job->requested_count++] = r;
	return true;
}

static void request_all(struct job *job, bool binary)
{
	for (int i = 0; job->model->out[i].name; i++)
		job->requested[job->requested_count++] =
			(struct requested_output){ .index = i, .binary = binary };
}

static bool read_json(struct job *job, const char *text, size_t size)
{
	static const char *const names[] = { "id", "parameters", "inputs", "outputs" };
	static const char *const parameter_names[] = { "binary_data_output" };
	bool given[MAX_TENSORS] = { false }, binary = false;
	const char *why;
	json_value root = json_check(text, size, &why), m[4], all_binary, v;
	struct json_iter it;

	if (!root)
		return bad_request(job->err, "the request is not JSON: %s", why);
	if (!read_members(root, "the request", 4, names, m, job->err) ||
	    !read_parameters(m[1], 1, parameter_names, &all_binary, job->err) ||
	    !read_flag(all_binary, parameter_names[0], &binary, job->err))
		return false;
	if (m[0] && json_type(m[0]) != JSON_STRING)
		return bad_request(job->err, "\"id\" must be a string");
	job->id = m[0];
	if (!m[2] || json_type(m[2]) != JSON_ARRAY)
		return bad_request(job->err, "the request needs \"inputs\", an array");
	for (it = json_each(m[2]); json_next(&it, NULL, &v);)
		if (!read_input(job, v, given))
			return false;
	for (int i = 0; job->model->in[i].name; i++)
		if (!given[i])
			return bad_request(job->err, "input '%s' is missing", job->model->in[i].name);
		else if (job->model->batching && job->in[i].shape[0] != job->in[0].shape[0])
			return bad_request(job->err, "the inputs differ in their batch");
	if (job->binary_left)
		return bad_request(job->err, "%zu bytes of binary data belong to no input",
				   job->binary_left);
	if (m[3]) {
		if (json_type(m[3]) != JSON_ARRAY)
			return bad_request(job->err, "\"outputs\" must be an array");
		for (it = json_each(m[3]); json_next(&it, NULL, &v);)
			if (!read_output(job, v, binary))
				return false;
	}
	/* An empty list specifies none, as does its absence: all, as in the gRPC form,
	 * where the two are the same message. */
	if (!job->requested_count)
		request_all(job, binary);
	return true;
}

/* Binary Tensor Data, Raw Binary Request. */
static bool read_raw(struct job *job, const struct infer_request *request)
{
	const struct tensor_spec *spec = &job->model->in[0];
	struct tensor *t = &job->in[0];
	uint64_t dims[MAX_RANK], unit = dtypes[spec->dtype].size;
	int rank = 0, variable = -1;

	if (spec[1].name)
		return bad_request(job->err, "raw binary requests need a model with one input");
	if (spec->dtype == DT_BYTES && (spec->rank != 1 || spec->shape[0] != 1))
		return bad_request(job->err, "raw binary requests need BYTES of shape [1]");
	if (job->model->batching)       /* "treated as batch-1 request" */
		dims[rank++] = 1;
	for (int i = 0; i < spec->rank; i++, rank++) {
		if (spec->shape[i] < 0 && variable >= 0)
			return bad_request(job->err, "raw binary requests need at most one variable dimension");
		if (spec->shape[i] < 0)
			variable = rank;
		else
			unit *= dims[rank] = (uint64_t)spec->shape[i];
	}
	if (variable >= 0)      /* a remainder is found when the sizes are compared */
		dims[variable] = unit ? request->size / unit : 0;
	tensor_shape(t, rank, dims);
	/* BYTES too are sent as "the binary data of the tensor", length and all. */
	const char *why = tensor_from_binary(t, request->body, request->size);
	if (why)
		return bad_request(job->err, "input '%s': %s", spec->name, why);
	request_all(job, true);
	return true;
}

struct class {
	union {
		uint64_t u;
		int64_t i;
		double f;
	} value;
	uint64_t index;
};

/* Highest first; of equals the lower index first. */
#define CLASS_ORDER(name, member) \
	static int name(const void *a, const void *b) \
	{ \
		const struct class *x = a, *y = b; \
		if (x->value.member != y->value.member) \
			return x->value.member > y->value.member ? -1 : 1; \
		return x->index < y->index ? -1 : 1; \
	}
CLASS_ORDER(by_unsigned, u)
CLASS_ORDER(by_signed, i)
CLASS_ORDER(by_float, f)

/* The top `count` of `classes` elements from `first` on, as "value:index[:label]". */
static bool classify_item(const struct tensor *t, uint64_t first, uint64_t classes, uint64_t count,
			  const char *const *labels, struct buf *out)
{
	enum kind kind = dtypes[t->dtype].kind;
	struct class *all = xmalloc(classes * sizeof *all);
	uint64_t labelled = 0;
	char text[NUMBER_TEXT];
	bool ordered = true;

	for (uint64_t i = 0; i < classes; i++) {
		all[i].index = i;
		if (kind == KIND_FLOAT) {
			all[i].value.f = tensor_number(t, first + i);
			ordered &= !isnan(all[i].value.f);
		} else if (kind == KIND_SIGNED) {
			all[i].value.i = tensor_signed(t, first + i);
		} else {
			all[i].value.u = tensor_unsigned(t, first + i);
		}
	}
	if (ordered) {
		qsort(all, classes, sizeof *all, kind == KIND_FLOAT ? by_float :
		      kind == KIND_SIGNED ? by_signed : by_unsigned);
		while (labels && labels[labelled])
			labelled++;
		for (uint64_t k = 0; k < count; k++) {
			struct buf s = {0};
			uint64_t index = all[k].index;

			number_text(t, first + index, text);
			buf_printf(&s, "%s:%" PRIu64, text, index);
			if (index < labelled)
				buf_printf(&s, ":%s", labels[index]);
			bytes_add(out, s.data, s.len);
			buf_free(&s);
		}
	}
	free(all);
	return ordered;
}

/* "... type BYTES with shape [ batch-size, <count> ]"; a model without batches
 * has no batch size, so its shape is [ <count> ], as in the document's example. */
static bool classify(struct job *job, const struct requested_output *r, struct tensor *classes)
{
	const struct tensor *t = &job->out[r->index];
	const struct tensor_spec *spec = &job->model->out[r->index];
	bool batching = job->model->batching;
	uint64_t batch = batching ? t->shape[0] : 1, each = t->count / batch;
	uint64_t shape[] = { batch, r->classes };
	struct buf b = {0};

	if (t->dtype == DT_BYTES)
		return bad_request(job->err, "output '%s' is BYTES and cannot be classified", spec->name);
	/* "The <count> dimension [...] will equal the 'count' value specified" */
	if (r->classes > each)
		return bad_request(job->err, "output '%s' has only %" PRIu64 " classes", spec->name, each);
	for (uint64_t item = 0; item < batch; item++)
		if (!classify_item(t, item * each, each, r->classes, spec->labels, &b)) {
			buf_free(&b);
			return bad_request(job->err, "output '%s' holds NaN, which has no order",
					   spec->name);
		}
	classes->dtype = DT_BYTES;
	tensor_shape(classes, batching ? 2 : 1, batching ? shape : shape + 1);
	tensor_take(classes, &b);
	return true;
}

static bool write_output(struct job *job, const struct requested_output *r, struct buf *json,
			 struct buf *binary)
{
	const char *name = job->model->out[r->index].name, *why = NULL;
	struct tensor classes = {0};
	const struct tensor *t = &job->out[r->index];

	if (r->classes) {
		if (!classify(job, r, &classes))
			return false;
		t = &classes;
	}
	buf_printf(json, "{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[", name,
		   dtypes[t->dtype].name);
	for (int i = 0; i < t->rank; i++)
		buf_printf(json, "%s%" PRIu64, i ? "," : "", t->shape[i]);
	if (r->binary) {
		buf_printf(json, "],\"parameters\":{\"binary_data_size\":%zu}}", t->size);
		buf_add(binary, t->data, t->size);
	} else {
		buf_puts(json, "],\"data\":");
		why = tensor_to_json(t, json);
		buf_puts(json, "}");
	}
	tensor_free(&classes);
	return !why || bad_request(job->err, "output '%s': %s", name, why);
}

static bool write_response(struct job *job, struct infer_response *response)
{
	struct buf *json = &response->body, binary = {0};
	bool ok = true;

	buf_printf(json, "{\"model_name\":\"%s\",\"model_version\":\"%s\",", job->model->name,
		   MODEL_VERSION);
	if (job->id) {
		buf_puts(json, "\"id\":");
		buf_add(json, job->id, json_length(job->id));
		buf_puts(json, ",");
	}
	buf_puts(json, "\"outputs\":[");
	for (int i = 0; ok && i < job->requested_count; i++) {
		if (i)
			buf_puts(json, ",");
		ok = write_output(job, &job->requested[i], json, &binary);
		response->binary |= job->requested[i].binary;
	}
	buf_puts(json, "]}");
	response->json_size = json->len;
	buf_add(json, binary.data, binary.len);
	buf_free(&binary);
	return ok;
}

bool infer(const struct model *model, const struct infer_request *request,
	   struct infer_response *response, struct error *err)
{
	struct job job = {
		.model = model,
		.binary = request->body + request->json_size,
		.binary_left = request->size - request->json_size,
		.err = err,
	};

	for (int i = 0; model->in[i].name; i++)
		job.in[i].dtype = model->in[i].dtype;
	for (int i = 0; model->out[i].name; i++)
		job.out[i].dtype = model->out[i].dtype;
	bool ok = (request->raw ? read_raw(&job, request)
				: read_json(&job, (const char *)request->body, request->json_size)) &&
		  model->compute(job.in, job.out, err) && write_response(&job, response);
	for (int i = 0; i < MAX_TENSORS; i++) {
		tensor_free(&job.in[i]);
		tensor_free(&job.out[i]);
	}
	if (!ok)
		buf_free(&response->body);
	return ok;
}
