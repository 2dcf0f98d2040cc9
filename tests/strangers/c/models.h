/* The models: a table of data, and the functions that compute them. */
#ifndef MODELS_H
#define MODELS_H

#include "tensor.h"

#define MAX_TENSORS   4
#define MAX_BATCH     8
#define MODEL_VERSION "1"       /* the only version of every model */
#define MAX_OUTPUT    (64u << 20)

struct tensor_spec {
	const char *name;       /* NULL ends the list */
	enum dtype dtype;
	int rank;
	int64_t shape[MAX_RANK];        /* -1: any size; without the batch dimension */
	const char *const *labels;      /* of classes, NULL at the end; or NULL */
};

struct model {
	const char *name;
	/* Gets the inputs in declared order, of a datatype and a shape that fit;
	 * fills the outputs, whose datatype is set, and their shapes. */
	bool (*compute)(const struct tensor *in, struct tensor *out, struct error *err);
	bool batching;
	struct tensor_spec in[MAX_TENSORS + 1], out[MAX_TENSORS + 1];
};

extern const struct model models[];
extern const size_t model_count;

const struct model *model_find(const char *name);

#endif
