import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.CharacterCodingException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

/** The HTTP side: paths, methods, headers. Start with: java -cp OUT Server --port 0 */
public final class Server {
    private static final int MAX_BODY = 64 << 20;
    /** What of a body that is too large is read away, so that the client gets to read the refusal. */
    private static final long MAX_DRAINED = 4L * MAX_BODY;

    private static final List<String> QUERY = List.of("GET", "HEAD");

    private Server() {
    }

    public static void main(String[] arguments) throws IOException {
        int port = 0;
        if (arguments.length == 2 && arguments[0].equals("--port") && arguments[1].matches("[0-9]{1,5}")) {
            port = Integer.parseInt(arguments[1]);
        } else if (arguments.length != 0) {
            System.err.println("usage: java -cp OUT Server [--port PORT]");
            System.exit(2);
        }
        // head and body leave in separate writes; Nagle's algorithm would hold the second back
        System.setProperty("sun.net.httpserver.nodelay", "true");
        InetAddress local = InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
        HttpServer server = HttpServer.create(new InetSocketAddress(local, port), 0);
        server.setExecutor(Executors.newFixedThreadPool(Math.max(8, 4 * Runtime.getRuntime().availableProcessors())));
        server.createContext("/", Server::handle);
        server.start();
        System.out.println("http://127.0.0.1:" + server.getAddress().getPort());
    }

    private static void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            try {
                // the body first, whatever becomes of the request: what is left of it would end the connection
                byte[] body = readBody(exchange);
                dispatch(exchange, body);
            } catch (Refusal refusal) {
                sendJson(exchange, refusal.status, Json.members("error", refusal.getMessage()));
            } catch (RuntimeException | OutOfMemoryError | StackOverflowError e) {
                e.printStackTrace();
                // nothing is sent before an answer is complete; if sending it failed there is no one to tell
                if (exchange.getResponseCode() == -1) sendJson(exchange, 500, Json.members("error", "internal error: " + e));
            }
        }
    }

    private static byte[] readBody(HttpExchange exchange) throws IOException {
        InputStream in = exchange.getRequestBody();
        byte[] body = in.readNBytes(MAX_BODY);
        long length = body.length;
        if (length == MAX_BODY) {
            byte[] buffer = new byte[1 << 16];
            for (int n; length < MAX_DRAINED && (n = in.read(buffer)) != -1; ) length += n;
        }
        if (length > MAX_BODY) throw new Refusal(413, "the body is longer than " + MAX_BODY + " bytes");
        return body;
    }

    private static void dispatch(HttpExchange exchange, byte[] body) throws IOException {
        String rawPath = exchange.getRequestURI().getRawPath();
        String[] path = rawPath.split("/", -1);
        for (int i = 0; i < path.length; i++) path[i] = unescape(path[i]);
        // path[0] is the empty string before the first slash; OpenAPI writes v2/, the text writes v2
        int length = path.length == 3 && path[2].isEmpty() ? 2 : path.length;
        if (length < 2 || !path[0].isEmpty() || !path[1].equals("v2")) throw unknown(rawPath);

        if (length == 2) {
            allow(exchange, QUERY);
            sendJson(exchange, 200, Json.members("name", "java-open-inference-server", "version", "1.0.0",
                    "extensions", List.of("binary_tensor_data", "classification")));
        } else if (length == 4 && path[2].equals("health") && (path[3].equals("live") || path[3].equals("ready"))) {
            allow(exchange, QUERY);
            // "live" in both: so says the schema of $ready_server_response
            sendJson(exchange, 200, Json.members("live", true));
        } else if (length >= 4 && path[2].equals("models")) {
            Model model = Models.ALL.get(path[3]);
            if (model == null) throw Refusal.notFound("unknown model '%s'", path[3]);
            if (length >= 6 && path[4].equals("versions"))
                throw Refusal.notFound("model '%s' has no version '%s': models here have no versions", path[3], path[5]);
            dispatch(exchange, body, model, length == 4 ? "" : length == 5 ? path[4] : "?");
        } else {
            throw unknown(rawPath);
        }
    }

    private static void dispatch(HttpExchange exchange, byte[] body, Model model, String action) throws IOException {
        switch (action) {
            case "":
                allow(exchange, QUERY);
                sendJson(exchange, 200, metadata(model));
                break;
            case "ready":
                allow(exchange, QUERY);
                sendJson(exchange, 200, Json.members("name", model.name(), "ready", true));
                break;
            case "infer":
                allow(exchange, List.of("POST"));
                List<String> encoding = exchange.getRequestHeaders().get("Content-Encoding");
                if (encoding != null && !encoding.stream().allMatch("identity"::equalsIgnoreCase)) {
                    exchange.getResponseHeaders().set("Accept-Encoding", "identity");
                    throw new Refusal(415, "the Content-Encoding " + encoding + " is not supported");
                }
                send(exchange, Inference.run(model, body, headerLength(exchange)));
                break;
            default:
                throw unknown(exchange.getRequestURI().getRawPath());
        }
    }

    private static String headerLength(HttpExchange exchange) {
        List<String> values = exchange.getRequestHeaders().get("Inference-Header-Content-Length");
        if (values == null) return null;
        if (values.size() > 1) throw Refusal.bad("Inference-Header-Content-Length is given %d times", values.size());
        return values.get(0).trim();
    }

    private static Refusal unknown(String path) {
        return Refusal.notFound("unknown path '%s'", path);
    }

    private static void allow(HttpExchange exchange, List<String> methods) {
        if (methods.contains(exchange.getRequestMethod())) return;
        exchange.getResponseHeaders().set("Allow", String.join(", ", methods));
        throw new Refusal(405, "the method " + exchange.getRequestMethod() + " is not allowed here");
    }

    /** One segment of a path; unlike URLDecoder it leaves '+' alone and replaces nothing that is not UTF-8. */
    private static String unescape(String segment) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            for (int i = 0; i < segment.length(); i++) {
                char c = segment.charAt(i);
                if (c == '%') {
                    bytes.write(Integer.parseInt(segment, i + 1, i + 3, 16));
                    i += 2;
                } else {
                    bytes.writeBytes(Json.utf8(String.valueOf(c)));
                }
            }
            return Json.utf8(bytes.toByteArray(), 0, bytes.size());
        } catch (IndexOutOfBoundsException | NumberFormatException | CharacterCodingException e) {
            throw Refusal.bad("malformed escapes in the path segment '%s'", segment);
        }
    }

    private static Map<String, Object> metadata(Model model) {
        return Json.members("name", model.name(), "platform", "openjdk_java",
                "inputs", model.inputs().stream().map(port -> metadata(model, port)).toList(),
                "outputs", model.outputs().stream().map(output -> metadata(model, output.port())).toList());
    }

    private static Map<String, Object> metadata(Model model, Model.Port port) {
        // "Variable-size dimensions are specified as -1", and so is the batch dimension
        List<Long> shape = Arrays.stream(model.fullShape(port, -1)).boxed().toList();
        return Json.members("name", port.name(), "datatype", port.type().name(), "shape", shape);
    }

    private static void sendJson(HttpExchange exchange, int status, Object value) throws IOException {
        send(exchange, status, "application/json", List.of(Json.bytes(value)));
    }

    private static void send(HttpExchange exchange, Inference.Answer answer) throws IOException {
        boolean binary = answer.jsonLength() >= 0;
        if (binary)
            exchange.getResponseHeaders().set("Inference-Header-Content-Length", Integer.toString(answer.jsonLength()));
        send(exchange, 200, binary ? "application/octet-stream" : "application/json", answer.parts());
    }

    private static void send(HttpExchange exchange, int status, String type, List<byte[]> parts) throws IOException {
        long length = parts.stream().mapToLong(part -> part.length).sum();
        exchange.getResponseHeaders().set("Content-Type", type);
        if (exchange.getRequestMethod().equals("HEAD")) {
            exchange.getResponseHeaders().set("Content-Length", Long.toString(length));
            exchange.sendResponseHeaders(status, -1);
            return;
        }
        exchange.sendResponseHeaders(status, length);
        try (OutputStream out = exchange.getResponseBody()) {
            for (byte[] part : parts) out.write(part);
        }
    }
}
