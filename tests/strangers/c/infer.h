/* The inference request and response of the protocol and its extensions. */
#ifndef INFER_H
#define INFER_H

#include "models.h"

struct infer_request {
	const uint8_t *body;
	size_t size;
	size_t json_size;       /* of the body, 0 when the body is raw binary data */
	bool raw;
};

struct infer_response {
	struct buf body;        /* the JSON object, then the binary data */
	size_t json_size;
	bool binary;
};

bool infer(const struct model *model, const struct infer_request *request,
	   struct infer_response *response, struct error *err);

#endif
