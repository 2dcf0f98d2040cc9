import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.math.BigInteger;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpHeaders;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import java.util.zip.InflaterInputStream;

/**
 * A client of the V2 / Open Inference Protocol over HTTP, with Triton's binary tensor data, raw binary request and
 * classification extensions. Safe for use by several threads.
 */
public final class Client {
    static final String HEADER_LENGTH = "Inference-Header-Content-Length";

    /** A tensor in its binary form; dimensions are unsigned. */
    public record Tensor(String name, String datatype, long[] shape, byte[] data) {
    }

    /** A tensor to send, as binary data or as JSON. */
    public record Input(Tensor tensor, boolean binary) {
    }

    /** A requested output; {@code binary} may be null; without classification, {@code classes} is 0. */
    public record Output(String name, Boolean binary, int classes) {
    }

    /** An answer; {@code id} is null if the server gave none. */
    public record Response(String id, List<Tensor> outputs) {
    }

    /** One inference. */
    public static final class Request {
        String model;
        String version = "";
        String id;
        Map<String, Object> parameters = Map.of();
        List<Input> inputs = List.of();
        List<Output> outputs;
        Boolean binaryOutputs;
        boolean raw;
        String coding;
        String accepts;
    }

    private record Body(byte[] content, int jsonLength) {
    }

    private static final HttpClient HTTP = HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .followRedirects(HttpClient.Redirect.NEVER)
            .proxy(HttpClient.Builder.NO_PROXY)
            .build();

    private final String base;
    private final Duration timeout;

    public Client(String base, Duration timeout) {
        this.base = base.replaceAll("/+$", "");
        this.timeout = timeout;
    }

    /** Makes one inference, and throws a ProtocolException or an IOException if there is no right answer. */
    public Response infer(Request asks) throws IOException, InterruptedException {
        long deadline = System.nanoTime() + timeout.toNanos();
        Body body = encode(asks);
        HttpRequest.Builder builder = HttpRequest.newBuilder(address(asks))
                .timeout(timeout)
                .header("Content-Type", body.jsonLength() < 0 ? "application/json" : "application/octet-stream");
        if (body.jsonLength() >= 0) {
            builder.header(HEADER_LENGTH, Integer.toString(body.jsonLength()));
        }
        byte[] content = body.content();
        if (asks.coding != null) {
            content = compress(content, asks.coding);
            builder.header("Content-Encoding", asks.coding);
        }
        if (asks.accepts != null) {
            builder.header("Accept-Encoding", asks.accepts);
        }
        HttpRequest request = builder.POST(HttpRequest.BodyPublishers.ofByteArray(content)).build();
        HttpResponse<byte[]> answer = exchange(request, deadline);
        byte[] read = decompress(answer.body(), answer.headers().firstValue("Content-Encoding").orElse(""));
        if (answer.statusCode() != 200) {
            throw new ProtocolException(errorMessage(read, answer.statusCode()), answer.statusCode());
        }
        return decode(asks, answer.headers(), read);
    }

    /** The timeout of HttpRequest ends with the headers of the answer; this one holds for the body as well. */
    private static HttpResponse<byte[]> exchange(HttpRequest request, long deadline)
            throws IOException, InterruptedException {
        CompletableFuture<HttpResponse<byte[]>> future =
                HTTP.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray());
        try {
            return future.get(Math.max(deadline - System.nanoTime(), 0), TimeUnit.NANOSECONDS);
        } catch (TimeoutException error) {
            future.cancel(true);
            throw new IOException("the answer took too long");
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            throw cause instanceof IOException known ? known : new IOException(cause);
        }
    }

    private URI address(Request asks) {
        String path = base + "/v2/models/" + segment(asks.model);
        if (asks.version != null && !asks.version.isEmpty()) {
            path += "/versions/" + segment(asks.version);
        }
        return URI.create(path + "/infer");
    }

    private static String segment(String text) {
        StringBuilder out = new StringBuilder();
        for (byte one : Codec.encodeUtf8(text)) {
            boolean plain = one >= 'a' && one <= 'z' || one >= 'A' && one <= 'Z' || one >= '0' && one <= '9'
                    || "-._~".indexOf(one) >= 0;
            if (plain) {
                out.append((char) one);
            } else {
                out.append('%').append(String.format(Locale.ROOT, "%02X", Byte.toUnsignedInt(one)));
            }
        }
        return out.toString();
    }

    private static byte[] compress(byte[] content, String coding) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (OutputStream zip = switch (coding) {
            case "gzip" -> new GZIPOutputStream(out);
            case "deflate" -> new DeflaterOutputStream(out);
            default -> throw new IllegalArgumentException("unknown coding " + coding);
        }) {
            zip.write(content);
        }
        return out.toByteArray();
    }

    private static byte[] decompress(byte[] content, String coding) throws IOException {
        InputStream in = new ByteArrayInputStream(content);
        switch (coding.trim().toLowerCase(Locale.ROOT)) {
            case "", "identity":
                return content;
            case "gzip", "x-gzip":
                return new GZIPInputStream(in).readAllBytes();
            case "deflate":
                return new InflaterInputStream(in).readAllBytes();
            default:
                throw new ProtocolException("unknown Content-Encoding " + coding);
        }
    }

    private static String errorMessage(byte[] content, int status) {
        try {
            String text = Codec.decodeUtf8(content, 0, content.length);
            if (Json.parse(text) instanceof Map<?, ?> object && object.get("error") instanceof String message) {
                return message;
            }
        } catch (ProtocolException error) {
            // No error object: the status has to do.
        }
        return "HTTP status " + status;
    }

    // ---- requests

    private static Body encode(Request asks) {
        for (Input input : asks.inputs) {
            Codec.check(input.tensor().datatype(), input.tensor().shape(), input.tensor().data());
        }
        if (asks.raw) {
            if (asks.inputs.size() != 1 || asks.inputs.get(0).tensor().datatype().equals("BYTES")) {
                throw new IllegalArgumentException("a raw request has one input, and none of BYTES");
            }
            return new Body(asks.inputs.get(0).tensor().data(), 0);
        }
        Map<String, Object> object = new LinkedHashMap<>();
        if (asks.id != null) {
            object.put("id", asks.id);
        }
        Map<String, Object> parameters = new LinkedHashMap<>(asks.parameters);
        if (asks.binaryOutputs != null) {
            parameters.put("binary_data_output", asks.binaryOutputs);
        }
        if (!parameters.isEmpty()) {
            object.put("parameters", parameters);
        }
        boolean anyBinary = false;
        ByteArrayOutputStream tail = new ByteArrayOutputStream();
        List<Object> inputs = new ArrayList<>();
        for (Input input : asks.inputs) {
            Tensor tensor = input.tensor();
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("name", tensor.name());
            one.put("shape", Arrays.stream(tensor.shape()).mapToObj(size -> new Json.Num(Long.toUnsignedString(size)))
                    .toList());
            one.put("datatype", tensor.datatype());
            if (input.binary()) {
                anyBinary = true;
                one.put("parameters", Map.of("binary_data_size", tensor.data().length));
                tail.writeBytes(tensor.data());
            } else {
                one.put("data", Codec.toJson(tensor.datatype(), tensor.data()));
            }
            inputs.add(one);
        }
        object.put("inputs", inputs);
        if (asks.outputs != null) {
            List<Object> outputs = new ArrayList<>();
            for (Output output : asks.outputs) {
                Map<String, Object> one = new LinkedHashMap<>();
                one.put("name", output.name());
                Map<String, Object> wishes = new LinkedHashMap<>();
                if (output.binary() != null) {
                    wishes.put("binary_data", output.binary());
                }
                if (output.classes() > 0) {
                    wishes.put("classification", output.classes());
                }
                if (!wishes.isEmpty()) {
                    one.put("parameters", wishes);
                }
                outputs.add(one);
            }
            object.put("outputs", outputs);
        }
        String json = Json.write(object);
        byte[] head = Codec.encodeUtf8(json);
        if (!anyBinary) {
            return new Body(head, -1);
        }
        byte[] content = Arrays.copyOf(head, Math.addExact(head.length, tail.size()));
        System.arraycopy(tail.toByteArray(), 0, content, head.length, tail.size());
        return new Body(content, head.length);
    }

    // ---- answers

    private static Response decode(Request asks, HttpHeaders headers, byte[] content) {
        int jsonLength = content.length;
        List<String> lengths = headers.allValues(HEADER_LENGTH);
        boolean framed = !lengths.isEmpty();
        if (framed) {
            String text = lengths.get(0).trim();
            if (lengths.size() > 1 || !text.matches("[0-9]{1,18}") || Long.parseLong(text) > content.length) {
                throw new ProtocolException(HEADER_LENGTH + " is " + lengths + ", the body has " + content.length);
            }
            jsonLength = Integer.parseInt(text);
        }
        if (!(Json.parse(Codec.decodeUtf8(content, 0, jsonLength)) instanceof Map<?, ?> object)) {
            throw new ProtocolException("the answer is no JSON object");
        }
        Object id = object.get("id");
        if (id != null && !(id instanceof String)) {
            throw new ProtocolException("id is no string");
        }
        if (id != null && asks.id != null && !asks.raw && !asks.id.equals(id)) {
            throw new ProtocolException("the answer has id " + id + " instead of " + asks.id);
        }
        if (!(object.get("outputs") instanceof List<?> outputs)) {
            throw new ProtocolException(object.get("error") instanceof String text ? text : "an answer without outputs");
        }
        List<Tensor> tensors = new ArrayList<>();
        int at = jsonLength;
        for (Object one : outputs) {
            if (!(one instanceof Map<?, ?> output)) {
                throw new ProtocolException("an output is no object");
            }
            String name = text(output, "name");
            String datatype = text(output, "datatype");
            if (datatype.equals("STRING")) { // so the examples of the classification extension
                datatype = "BYTES";
            }
            long[] shape = shape(output.get("shape"));
            Object size = null;
            Object parameters = output.get("parameters");
            if (parameters instanceof Map<?, ?> map) {
                size = map.get("binary_data_size");
            } else if (parameters != null) {
                throw new ProtocolException("parameters are no object");
            }
            byte[] data;
            if (size == null) {
                data = Codec.fromJson(datatype, shape, output.get("data"));
            } else {
                int length = binarySize(size, content.length - at);
                if (length > 0 && !framed) {
                    throw new ProtocolException("binary data without " + HEADER_LENGTH);
                }
                if (output.get("data") instanceof List<?> list && !list.isEmpty()) {
                    throw new ProtocolException("both data and binary_data_size");
                }
                data = Arrays.copyOfRange(content, at, at + length);
                at += length;
            }
            Codec.check(datatype, shape, data);
            tensors.add(new Tensor(name, datatype, shape, data));
        }
        if (at < content.length) {
            throw new ProtocolException(content.length - at + " bytes follow the binary data");
        }
        return new Response((String) id, tensors);
    }

    private static int binarySize(Object size, int left) {
        if (!(size instanceof Json.Num number)) {
            throw new ProtocolException("binary_data_size is no number");
        }
        BigInteger length = number.integer();
        if (length.signum() < 0 || length.compareTo(BigInteger.valueOf(left)) > 0) {
            throw new ProtocolException("binary_data_size is " + length + ", and " + left + " bytes are left");
        }
        return length.intValueExact();
    }

    private static String text(Map<?, ?> output, String member) {
        if (!(output.get(member) instanceof String text)) {
            throw new ProtocolException("an output without " + member);
        }
        return text;
    }

    private static long[] shape(Object value) {
        if (!(value instanceof List<?> items)) {
            throw new ProtocolException("an output without shape");
        }
        long[] shape = new long[items.size()];
        for (int i = 0; i < shape.length; i++) {
            if (!(items.get(i) instanceof Json.Num number)) {
                throw new ProtocolException("a dimension is no number");
            }
            BigInteger dimension = number.integer();
            if (dimension.signum() < 0 || dimension.bitLength() > 64) {
                throw new ProtocolException("a dimension of " + dimension);
            }
            shape[i] = dimension.longValue();
        }
        return shape;
    }
}
