import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** An adapter of the client for oip-conformance: JSON lines over stdin and stdout. */
public final class Adapter {
    private static final Map<String, Client> CLIENTS = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        ExecutorService threads = Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<?, ?> command = (Map<?, ?>) Json.parse(line);
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("seq", command.get("seq"));
            if (command.get("command").equals("hello")) {
                said.put("client", Map.of("name", "outside-java", "version", "1.0", "language", "Java",
                        "transports", List.of("http")));
            } else {
                String timeout = ((Json.Num) command.get("timeout_s")).text();
                String address = (String) command.get("address");
                Client client = CLIENTS.computeIfAbsent(timeout + " " + address, key ->
                        new Client(address, Duration.ofMillis((long) (Double.parseDouble(timeout) * 1000))));
                List<Object> results = new ArrayList<>();
                List<Future<Object>> futures = new ArrayList<>();
                for (Object asks : (List<?>) command.get("inferences")) {
                    if (command.get("at_once") == Boolean.TRUE) {
                        futures.add(threads.submit(() -> infer(client, (Map<?, ?>) asks)));
                    } else {
                        results.add(infer(client, (Map<?, ?>) asks));
                    }
                }
                for (Future<Object> future : futures) {
                    results.add(future.get());
                }
                said.put("results", results);
            }
            out.print(Json.write(said) + "\n");
            out.flush();
        }
    }

    private static Object infer(Client client, Map<?, ?> asks) {
        Client.Response response;
        try {
            response = client.infer(request(asks));
        } catch (Exception error) {
            Map<String, Object> said = new LinkedHashMap<>();
            said.put("message", String.valueOf(error.getMessage()));
            if (error instanceof ProtocolException known && known.status() != 0) {
                said.put("status", known.status());
            }
            return Map.of("error", said);
        }
        List<Object> outputs = new ArrayList<>();
        for (Client.Tensor tensor : response.outputs()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("name", tensor.name());
            one.put("datatype", tensor.datatype());
            one.put("shape", Arrays.stream(tensor.shape()).mapToObj(size -> new Json.Num(Long.toUnsignedString(size)))
                    .toList());
            one.put("data", Base64.getEncoder().encodeToString(tensor.data()));
            outputs.add(one);
        }
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("outputs", outputs);
        if (response.id() != null) {
            said.put("id", response.id());
        }
        return said;
    }

    private static Boolean binary(Object form) {
        return form == null ? null : form.equals("binary");
    }

    private static Client.Request request(Map<?, ?> asks) {
        Client.Request request = new Client.Request();
        request.model = (String) asks.get("model");
        request.version = (String) asks.get("version");
        request.id = (String) asks.get("id");
        if (asks.get("parameters") instanceof Map<?, ?> parameters) {
            request.parameters = new LinkedHashMap<>();
            parameters.forEach((name, value) -> request.parameters.put((String) name, value));
        }
        request.inputs = new ArrayList<>();
        for (Object item : (List<?>) asks.get("inputs")) {
            Map<?, ?> one = (Map<?, ?>) item;
            long[] shape = ((List<?>) one.get("shape")).stream()
                    .mapToLong(size -> Long.parseUnsignedLong(((Json.Num) size).text())).toArray();
            byte[] data = Base64.getDecoder().decode((String) one.get("data"));
            Client.Tensor tensor =
                    new Client.Tensor((String) one.get("name"), (String) one.get("datatype"), shape, data);
            request.inputs.add(new Client.Input(tensor, "binary".equals(one.get("form"))));
        }
        if (asks.get("outputs") instanceof List<?> outputs) {
            request.outputs = new ArrayList<>();
            for (Object item : outputs) {
                Map<?, ?> one = (Map<?, ?>) item;
                int classes = one.get("classes") instanceof Json.Num number ? number.integer().intValueExact() : 0;
                request.outputs.add(new Client.Output((String) one.get("name"), binary(one.get("form")), classes));
            }
        }
        request.binaryOutputs = binary(asks.get("all_outputs"));
        request.raw = asks.get("raw") == Boolean.TRUE;
        request.coding = (String) asks.get("coding");
        request.accepts = (String) asks.get("accepts");
        return request;
    }
}
