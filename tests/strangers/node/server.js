'use strict';

const http = require('node:http');
const { parseArgs } = require('node:util');
const { infer, metadata } = require('./inference');
const { MODELS } = require('./models');
const { RequestError } = require('./tensors');

const HOST = '127.0.0.1';
const MAX_BODY = 64 * 1024 * 1024;
const SHUTDOWN_GRACE_MS = 5000;

const SERVER_METADATA = {
  name: 'node-open-inference-server',
  version: '1.0.0',
  extensions: ['binary_tensor_data', 'classification'],
};

const json = (value) => ({
  headers: { 'Content-Type': 'application/json' },
  body: Buffer.from(JSON.stringify(value)),
});

// ---- Routes ------------------------------------------------------------------------------------

function decodeSegment(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new RequestError(`malformed URL escape in ${JSON.stringify(segment)}`);
  }
}

function findModel(name) {
  const model = MODELS.get(name);
  if (!model) throw new RequestError(`unknown model ${JSON.stringify(name)}`, 404);
  return model;
}

/** { method, handle } for a request target. */
function route(target) {
  const path = target.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0];
  const notFound = new RequestError(`unknown path ${JSON.stringify(path)}`, 404);
  const [, ...segments] = path.split('/').map(decodeSegment);
  if (segments[0] !== 'v2') throw notFound;
  const get = (value) => ({ method: 'GET', handle: () => json(value) });

  // The OpenAPI file has "/v2/", the text "v2".
  if (segments.length === 1 || (segments.length === 2 && segments[1] === '')) {
    return get(SERVER_METADATA);
  }
  if (segments[1] === 'health' && segments.length === 3) {
    // $ready_server_response is documented with a field "live" as well.
    if (['live', 'ready'].includes(segments[2])) return get({ live: true });
  }
  if (segments[1] === 'models' && segments.length >= 3) {
    const [, , name, ...rest] = segments;
    const model = findModel(name);
    if (rest[0] === 'versions' && rest.length >= 2) {
      throw new RequestError(`model "${model.name}" has no versions`, 404);
    }
    switch (rest.join('/')) {
      case '':
        if (rest.length === 0) return get(metadata(model));
        break;
      case 'ready':
        return get({ name: model.name, ready: true });
      case 'infer':
        return {
          method: 'POST',
          handle: async (request) => infer(model, request.headers, await readBody(request)),
        };
    }
  }
  throw notFound;
}

// ---- HTTP --------------------------------------------------------------------------------------

function readBody(request) {
  const encoding = request.headers['content-encoding'] ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    throw new RequestError(`unsupported Content-Encoding ${JSON.stringify(encoding)}`, 415,
      { 'Accept-Encoding': 'identity' });
  }
  return new Promise((resolve, reject) => {
    const chunks = [];
    let size = 0;
    request.on('data', (chunk) => {
      size += chunk.length;
      if (size <= MAX_BODY) {
        chunks.push(chunk);
      } else {
        // Leaving the stream would reset the connection before the answer is out, so it drains.
        chunks.length = 0;
        reject(new RequestError(`the body exceeds ${MAX_BODY} bytes`, 413, { Connection: 'close' }));
      }
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', reject);
  });
}

async function answer(request) {
  const { method, handle } = route(request.url);
  const allowed = method === 'GET' ? ['GET', 'HEAD'] : [method];
  if (!allowed.includes(request.method)) {
    throw new RequestError(`method ${request.method} is not allowed here`, 405,
      { Allow: allowed.join(', ') });
  }
  return { status: 200, ...await handle(request) };
}

function failure(error) {
  if (error instanceof RequestError) {
    const { headers, body } = json({ error: error.message });
    return { status: error.status, headers: { ...headers, ...error.headers }, body };
  }
  console.error(error);
  return { status: 500, ...json({ error: 'internal server error' }) };
}

async function onRequest(request, response) {
  let result;
  try {
    result = await answer(request);
  } catch (error) {
    if (request.errored) return; // the client has gone
    result = failure(error);
  }
  const { status, headers, body } = result;
  response.writeHead(status, { ...headers, 'Content-Length': body.length });
  response.end(body); // node:http leaves out the body of an answer to HEAD
}

/** What node:http cannot parse gets a JSON error too. */
function onClientError(error, socket) {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }[error.code] ?? 400;
  const { body } = json({ error: 'malformed HTTP request' });
  socket.end(`HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\nConnection: close\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
}

function main() {
  const { values } = parseArgs({ options: { port: { type: 'string', default: '8000' } } });
  const port = Number(values.port);
  if (!/^\d+$/.test(values.port) || port > 65535) throw new Error(`invalid port ${values.port}`);

  const server = http.createServer(onRequest);
  server.on('clientError', onClientError);
  server.on('error', (error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
  server.listen(port, HOST, () => {
    console.log(`http://${HOST}:${server.address().port}`);
  });

  const shutDown = () => {
    server.close(); // lets requests under way finish
    setTimeout(() => server.closeAllConnections(), SHUTDOWN_GRACE_MS).unref();
  };
  process.once('SIGTERM', shutDown);
  process.once('SIGINT', shutDown);
}

try {
  main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
}
