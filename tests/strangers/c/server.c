/* An Open Inference Protocol (V2) server: HTTP by GNU libmicrohttpd, routes, main. */
#include "infer.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SERVER_NAME    "oip-microhttpd"
#define SERVER_VERSION "1.0.0"
#define MAX_BODY       (64u << 20)
#define MAX_SEGMENTS   6
#define SEGMENT_SIZE   128
#define JSON_HEADER    "Inference-Header-Content-Length"

/* What a request has sent so far. */
struct exchange {
	struct buf body;
	bool too_large;
};

/* What the routes answer: a body, or what `err` says if its status is set. */
struct reply {
	struct infer_response content;
	const char *allow;      /* with status 405 */
	struct error err;
};

/* ---- routes ---- */

static void write_server_metadata(struct buf *b)
{
	buf_puts(b, "{\"name\":\"" SERVER_NAME "\",\"version\":\"" SERVER_VERSION "\","
		    "\"extensions\":[\"binary_tensor_data\",\"classification\"]}");
}

static void write_tensor_metadata(struct buf *b, const struct model *model,
				  const struct tensor_spec *specs)
{
	for (int i = 0; specs[i].name; i++) {
		buf_printf(b, "%s{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":[", i ? "," : "",
			   specs[i].name, dtypes[specs[i].dtype].name);
		/* the shape of the tensor as requests give it: with the batch */
		if (model->batching)
			buf_puts(b, specs[i].rank ? "-1," : "-1");
		for (int d = 0; d < specs[i].rank; d++)
			buf_printf(b, "%s%lld", d ? "," : "", (long long)specs[i].shape[d]);
		buf_puts(b, "]}");
	}
}

static void write_model_metadata(struct buf *b, const struct model *model)
{
	buf_printf(b, "{\"name\":\"%s\",\"versions\":[\"" MODEL_VERSION "\"],"
		      "\"platform\":\"native_c\",\"inputs\":[", model->name);
	write_tensor_metadata(b, model, model->in);
	buf_puts(b, "],\"outputs\":[");
	write_tensor_metadata(b, model, model->out);
	buf_puts(b, "]}");
}

struct header_search {
	const char *name, *value;
	int count;
};

static enum MHD_Result match_header(void *cls, enum MHD_ValueKind kind, const char *key,
				    const char *value)
{
	struct header_search *s = cls;

	(void)kind;
	if (strcasecmp(key, s->name) == 0) {
		s->value = value ? value : "";
		s->count++;
	}
	return MHD_YES;
}

/* The length of the JSON object; without the header the whole body is JSON. */
static bool read_json_header(struct MHD_Connection *connection, struct infer_request *request,
			     struct error *err)
{
	struct header_search s = { .name = JSON_HEADER };
	size_t n, length = 0;
	bool overflow = false;

	MHD_get_connection_values(connection, MHD_HEADER_KIND, match_header, &s);
	request->json_size = request->size;
	if (s.count == 0)
		return true;
	if (s.count > 1)
		return bad_request(err, JSON_HEADER " is given more than once");
	for (n = 0; s.value[n] >= '0' && s.value[n] <= '9'; n++)
		overflow |= __builtin_mul_overflow(length, 10u, &length) ||
			    __builtin_add_overflow(length, (size_t)(s.value[n] - '0'), &length);
	if (n == 0 || s.value[n + strspn(s.value + n, " \t")] != '\0')
		return bad_request(err, JSON_HEADER " is no length in bytes");
	if (overflow || length > request->size)
		return bad_request(err, JSON_HEADER " is longer than the body");
	request->json_size = length;
	request->raw = length == 0;
	return true;
}

static void answer_infer(struct MHD_Connection *connection, const struct exchange *exchange,
			 const struct model *model, struct reply *reply)
{
	struct infer_request request = {
		.body = (const uint8_t *)exchange->body.data,
		.size = exchange->body.len,
	};
	const char *coding = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_CONTENT_ENCODING);

	if (coding && *coding && strcasecmp(coding, "identity") != 0)
		fail(&reply->err, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
		     "request bodies must not be encoded");
	else if (read_json_header(connection, &request, &reply->err))
		infer(model, &request, &reply->content, &reply->err);
}

static bool allowed(const char *method, bool post, struct reply *reply)
{
	if (post ? !strcmp(method, MHD_HTTP_METHOD_POST)
		 : !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD))
		return true;
	reply->allow = post ? "POST" : "GET, HEAD";
	return fail(&reply->err, MHD_HTTP_METHOD_NOT_ALLOWED, "this resource allows %s only",
		    reply->allow);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Splits, then decodes, so that an escaped slash stays inside its segment.
 * Returns the number of segments, or -1 when the path can be none of ours. */
static int split_path(const char *p, char segments[][SEGMENT_SIZE])
{
	int count = 0;

	while (*p == '/') {
		size_t n = 0;

		if (count == MAX_SEGMENTS)
			return -1;
		for (p++; *p && *p != '/'; p++) {
			char c = *p;

			if (c == '%') {
				int high = hex_digit(p[1]), low = high < 0 ? -1 : hex_digit(p[2]);

				if (low < 0 || (high == 0 && low == 0))
					return -1;
				c = (char)(high << 4 | low);
				p += 2;
			}
			if (n == SEGMENT_SIZE - 1)
				return -1;
			segments[count][n++] = c;
		}
		segments[count++][n] = '\0';
	}
	return *p ? -1 : count;
}

static bool not_found(struct reply *reply)
{
	return fail(&reply->err, MHD_HTTP_NOT_FOUND, "no such resource");
}

/* What follows v2/models/NAME[/versions/VERSION]: nothing, "ready" or "infer". */
static void route_model(struct MHD_Connection *connection, const struct exchange *exchange,
			const char *method, char segments[][SEGMENT_SIZE], int count,
			struct reply *reply)
{
	const struct model *model = model_find(segments[0]);
	struct buf *b = &reply->content.body;
	const char *version = NULL, *verb = "";
	int next = 1;

	if (next + 1 < count && !strcmp(segments[next], "versions")) {
		version = segments[next + 1];
		next += 2;
	}
	if (next < count && *segments[next])
		verb = segments[next++];
	if (next < count || (*verb && strcmp(verb, "ready") && strcmp(verb, "infer")))
		not_found(reply);
	else if (!model)
		fail(&reply->err, MHD_HTTP_NOT_FOUND, "unknown model '%s'", segments[0]);
	else if (version && strcmp(version, MODEL_VERSION) != 0)
		fail(&reply->err, MHD_HTTP_NOT_FOUND, "model '%s' has no version '%s'", model->name,
		     version);
	else if (!allowed(method, !strcmp(verb, "infer"), reply))
		;
	else if (!strcmp(verb, "infer"))
		answer_infer(connection, exchange, model, reply);
	else if (!strcmp(verb, "ready"))
		buf_printf(b, "{\"name\":\"%s\",\"ready\":true}", model->name);
	else
		write_model_metadata(b, model);
}

static void route(struct MHD_Connection *connection, const struct exchange *exchange,
		  const char *method, const char *path, struct reply *reply)
{
	char segments[MAX_SEGMENTS][SEGMENT_SIZE];
	int count = split_path(path, segments);

	if (count < 1 || strcmp(segments[0], "v2") != 0) {
		not_found(reply);
	} else if (count == 1 || (count == 2 && !*segments[1])) {       /* v2, or /v2/ as in the YAML */
		if (allowed(method, false, reply))
			write_server_metadata(&reply->content.body);
	} else if (count == 3 && !strcmp(segments[1], "health") &&
		   (!strcmp(segments[2], "live") || !strcmp(segments[2], "ready"))) {
		/* $ready_server_response has the member "live" as well */
		if (allowed(method, false, reply))
			buf_puts(&reply->content.body, "{\"live\":true}");
	} else if (count >= 3 && !strcmp(segments[1], "models") && *segments[2]) {
		route_model(connection, exchange, method, segments + 2, count - 2, reply);
	} else {
		not_found(reply);
	}
}

/* ---- HTTP ---- */

static enum MHD_Result send_reply(struct MHD_Connection *connection, struct reply *reply)
{
	struct infer_response *content = &reply->content;
	unsigned status = reply->err.status ? reply->err.status : MHD_HTTP_OK;
	char length[24];

	if (reply->err.status) {
		*content = (struct infer_response){0};
		buf_puts(&content->body, "{\"error\":");
		buf_json_string(&content->body, reply->err.text, strlen(reply->err.text), true);
		buf_puts(&content->body, "}");
	}
	struct MHD_Response *response = MHD_create_response_from_buffer(
		content->body.len, content->body.data, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		buf_free(&content->body);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
				content->binary ? "application/octet-stream" : "application/json");
	if (content->binary) {
		snprintf(length, sizeof length, "%zu", content->json_size);
		MHD_add_response_header(response, JSON_HEADER, length);
	}
	if (reply->allow)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, reply->allow);
	if (status == MHD_HTTP_UNSUPPORTED_MEDIA_TYPE)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ACCEPT_ENCODING, "identity");
	enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result send_too_large(struct MHD_Connection *connection)
{
	struct reply reply = {0};

	fail(&reply.err, MHD_HTTP_CONTENT_TOO_LARGE, "the body is larger than %u bytes", MAX_BODY);
	return send_reply(connection, &reply);
}

/* Called once with the headers, then for every piece of the body, then once more. */
static enum MHD_Result handle(void *cls, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload_data,
			      size_t *upload_data_size, void **con_cls)
{
	struct exchange *exchange = *con_cls;
	struct reply reply = {0};

	(void)cls;
	(void)version;
	if (!exchange) {
		const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
								 MHD_HTTP_HEADER_CONTENT_LENGTH);

		/* before the body, and so before "100 Continue" */
		if (length && strtoull(length, NULL, 10) > MAX_BODY)
			return send_too_large(connection);
		*con_cls = exchange = xmalloc(sizeof *exchange);
		*exchange = (struct exchange){0};
		return MHD_YES;
	}
	if (*upload_data_size) {
		exchange->too_large |= *upload_data_size > MAX_BODY - exchange->body.len;
		if (exchange->too_large)
			buf_free(&exchange->body);
		else
			buf_add(&exchange->body, upload_data, *upload_data_size);
		*upload_data_size = 0;
		return MHD_YES;
	}
	if (exchange->too_large)
		return send_too_large(connection);
	route(connection, exchange, method, url, &reply);
	return send_reply(connection, &reply);
}

static void completed(void *cls, struct MHD_Connection *connection, void **con_cls,
		      enum MHD_RequestTerminationCode how)
{
	struct exchange *exchange = *con_cls;

	(void)cls;
	(void)connection;
	(void)how;
	if (exchange)
		buf_free(&exchange->body);
	free(exchange);
	*con_cls = NULL;
}

/* Leaves the path as it came: split_path decodes it. */
static size_t keep_escaped(void *cls, struct MHD_Connection *connection, char *s)
{
	(void)cls;
	(void)connection;
	return strlen(s);
}

static bool parse_arguments(int argc, char **argv, uint16_t *port)
{
	char *end;

	if (argc == 1)
		return true;
	if (argc != 3 || strcmp(argv[1], "--port") != 0)
		return false;
	unsigned long n = strtoul(argv[2], &end, 10);
	*port = (uint16_t)n;
	return argv[2][0] >= '0' && argv[2][0] <= '9' && !*end && n <= UINT16_MAX;
}

int main(int argc, char **argv)
{
	uint16_t port = 8000;
	sigset_t stop;
	int signal_number;

	if (!parse_arguments(argc, argv, &port)) {
		fprintf(stderr, "usage: %s [--port N]\n", argv[0]);
		return 2;
	}
	/* blocked before the daemon's threads start, which inherit the mask */
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	pthread_sigmask(SIG_BLOCK, &stop, NULL);
	signal(SIGPIPE, SIG_IGN);

	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct MHD_Daemon *daemon = MHD_start_daemon(
		MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ERROR_LOG,
		port, NULL, NULL, handle, NULL,
		MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
		MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
		MHD_OPTION_UNESCAPE_CALLBACK, keep_escaped, NULL,
		MHD_OPTION_THREAD_POOL_SIZE, 4u,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)256 * 1024,
		MHD_OPTION_CONNECTION_TIMEOUT, 120u,
		MHD_OPTION_END);
	if (!daemon) {
		fprintf(stderr, "cannot listen on 127.0.0.1:%u\n", port);
		return 1;
	}
	printf("http://127.0.0.1:%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
	fflush(stdout);
	sigwait(&stop, &signal_number);
	MHD_stop_daemon(daemon);
	return 0;
}
