import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** An inference: the bytes of the request body to those of the response body. */
final class Inference {
    /** jsonLength is -1 where no output is binary: then the whole body is the JSON object. */
    record Answer(int jsonLength, List<byte[]> parts) {
    }

    /** A requested output: as binary data or as JSON, and as itself (0) or as so many classifications. */
    private record Request(Model.Output output, boolean binary, long classes) {
    }

    private final Model model;
    private final byte[] body;
    private int binaryAt;

    private Inference(Model model, byte[] body) {
        this.model = model;
        this.body = body;
    }

    /** @param headerLength the Inference-Header-Content-Length, null if the request has none */
    static Answer run(Model model, byte[] body, String headerLength) {
        Inference inference = new Inference(model, body);
        int jsonLength = body.length;
        if (headerLength != null) {
            if (!headerLength.matches("[0-9]+"))
                throw Refusal.bad("Inference-Header-Content-Length is no length: '%s'", headerLength);
            jsonLength = headerLength.length() > 18 ? Integer.MAX_VALUE
                    : (int) Math.min(Long.parseLong(headerLength), Integer.MAX_VALUE);
            if (jsonLength > body.length)
                throw Refusal.bad("Inference-Header-Content-Length is %s, the body has %d bytes only", headerLength, body.length);
            if (jsonLength == 0) return inference.raw();
        }
        return inference.structured(jsonLength);
    }

    /** Triton, Raw Binary Request: "all the model output will be requested to be returned in binary tensor form". */
    private Answer raw() {
        long[] shape = model.rawShape(body.length);
        Model.Port input = model.inputs().get(0);
        Tensor tensor = Tensor.fromBinary(input.name(), input.type(), shape, body, 0, body.length);
        return answer(null, Map.of(input.name(), tensor), allOutputs(true));
    }

    private Answer structured(int jsonLength) {
        Map<?, ?> request = Json.object(Json.parse(body, 0, jsonLength), "the inference request");
        binaryAt = jsonLength;
        // members the documents do not name (their examples send "model_name") and custom parameters are ignored
        String id = request.containsKey("id") ? Json.string(request.get("id"), "'id'") : null;
        Map<?, ?> parameters = parameters(request, "the inference request");
        boolean binary = parameters.containsKey("binary_data_output")
                && Json.bool(parameters.get("binary_data_output"), "'binary_data_output'");

        Map<String, Tensor> inputs = new LinkedHashMap<>();
        for (Object element : Json.array(request.get("inputs"), "'inputs'")) readInput(Json.object(element, "an input"), inputs);
        if (binaryAt < body.length)
            throw Refusal.bad("%d bytes follow the binary data of the inputs", body.length - binaryAt);
        for (Model.Port port : model.inputs())
            if (!inputs.containsKey(port.name())) throw Refusal.bad("input '%s' is missing", port.name());

        List<Request> requests = new ArrayList<>();
        if (request.containsKey("outputs"))
            for (Object element : Json.array(request.get("outputs"), "'outputs'")) {
                Request output = readOutput(Json.object(element, "a requested output"), binary);
                if (requests.stream().anyMatch(r -> r.output() == output.output()))
                    throw Refusal.bad("output '%s' is requested twice", output.output().port().name());
                requests.add(output);
            }
        // an empty list is taken as none given, as gRPC, where the two are the same message, has it
        return answer(id, inputs, requests.isEmpty() ? allOutputs(binary) : requests);
    }

    private List<Request> allOutputs(boolean binary) {
        return model.outputs().stream().map(output -> new Request(output, binary, 0)).toList();
    }

    /** "$parameter = $string : $string | $number | $boolean" (OIP, Parameters). */
    private static Map<?, ?> parameters(Map<?, ?> owner, String what) {
        if (!owner.containsKey("parameters")) return Map.of();
        Map<?, ?> parameters = Json.object(owner.get("parameters"), "'parameters' of " + what);
        parameters.forEach((name, value) -> {
            if (value == null || value instanceof Map || value instanceof List)
                throw Refusal.bad("parameter '%s' of %s must be a string, a number or a boolean", name, what);
        });
        return parameters;
    }

    private void readInput(Map<?, ?> input, Map<String, Tensor> inputs) {
        String name = Json.string(input.get("name"), "the name of an input");
        Model.Port port = model.inputs().stream().filter(p -> p.name().equals(name)).findFirst()
                .orElseThrow(() -> Refusal.bad("model '%s' has no input '%s'", model.name(), name));
        if (inputs.containsKey(name)) throw Refusal.bad("input '%s' is given twice", name);
        String what = "input '" + name + "'";

        String datatype = Json.string(input.get("datatype"), "the datatype of " + what);
        if (!datatype.equals(port.type().name()))
            throw Refusal.bad("%s has the datatype %s, not '%s'", what, port.type(), datatype);
        long[] shape = Json.array(input.get("shape"), "the shape of " + what).stream()
                .mapToLong(dimension -> Json.integer(dimension, 64, false, "a dimension of " + what)).toArray();
        model.checkShape(port, shape);

        Map<?, ?> parameters = parameters(input, what);
        if (!parameters.containsKey("binary_data_size")) {
            inputs.put(name, Tensor.fromJson(name, port.type(), shape, Json.array(input.get("data"), "the data of " + what)));
            return;
        }
        if (input.containsKey("data")) throw Refusal.bad("%s has both 'data' and 'binary_data_size'", what);
        long size = Json.integer(parameters.get("binary_data_size"), 64, true, "'binary_data_size' of " + what);
        if (size < 0 || size > body.length - binaryAt)
            throw Refusal.bad("'binary_data_size' of %s is %d, %d bytes of binary data are left in the body "
                    + "(Inference-Header-Content-Length tells where they begin)", what, size, body.length - binaryAt);
        inputs.put(name, Tensor.fromBinary(name, port.type(), shape, body, binaryAt, (int) size));
        binaryAt += (int) size;
    }

    private Request readOutput(Map<?, ?> requested, boolean binary) {
        String name = Json.string(requested.get("name"), "the name of a requested output");
        Model.Output output = model.outputs().stream().filter(o -> o.port().name().equals(name)).findFirst()
                .orElseThrow(() -> Refusal.bad("model '%s' has no output '%s'", model.name(), name));
        String what = "requested output '" + name + "'";
        Map<?, ?> parameters = parameters(requested, what);
        if (parameters.containsKey("binary_data"))
            binary = Json.bool(parameters.get("binary_data"), "'binary_data' of " + what);
        long classes = 0;
        if (parameters.containsKey("classification")) {
            classes = Json.integer(parameters.get("classification"), 64, true, "'classification' of " + what);
            if (classes < 1) throw Refusal.bad("'classification' of %s must be 1 or more", what);
        }
        return new Request(output, binary, classes);
    }

    private Answer answer(String id, Map<String, Tensor> inputs, List<Request> requests) {
        List<Object> outputs = new ArrayList<>();
        List<byte[]> parts = new ArrayList<>();
        for (Request request : requests) {
            String name = request.output().port().name();
            Tensor computed = request.output().compute().apply(inputs);
            Tensor tensor = request.classes() == 0 ? computed : classify(request, computed);
            Map<String, Object> output = Json.members("name", name, "datatype", tensor.type.name(),
                    "shape", (Json.Fragment) out -> out.append(Tensor.text(tensor.shape)));
            if (request.binary()) {
                byte[] data = tensor.toBinary();
                output.put("parameters", Map.of("binary_data_size", data.length));
                parts.add(data);
            } else {
                output.put("data", (Json.Fragment) out -> tensor.appendJson(name, out));
            }
            outputs.add(output);
        }
        Map<String, Object> response = Json.members("model_name", model.name());
        if (id != null) response.put("id", id);
        response.put("outputs", outputs);
        byte[] json = Json.bytes(response);
        int jsonLength = parts.isEmpty() ? -1 : json.length;
        parts.add(0, json);
        return new Answer(jsonLength, parts);
    }

    /**
     * "type BYTES with shape [ batch-size, <count> ]", "<value>:<index>[:<label>]" (Triton,
     * Classification); a model without batching has no batch-size, as in the examples there.
     */
    private Tensor classify(Request request, Tensor tensor) {
        String name = request.output().port().name();
        if (!tensor.type.integral && tensor.type.size < 2)
            throw Refusal.bad("output '%s' is %s, which has no highest values to classify by", name, tensor.type);
        int items = model.batching() ? (int) tensor.shape[0] : 1;
        int classes = tensor.count / items;
        // "<count> will equal the count value specified in the classification parameter"
        if (request.classes() > classes)
            throw Refusal.bad("output '%s' has %d classes, %d were requested", name, classes, request.classes());
        if (!tensor.type.integral)
            for (int i = 0; i < tensor.count; i++)
                if (Double.isNaN(tensor.real(i))) throw Refusal.bad("element %d of output '%s' is NaN, which has no order", i, name);

        int count = (int) request.classes();
        Tensor result = model.batching() ? new Tensor(Datatype.BYTES, items, count) : new Tensor(Datatype.BYTES, count);
        List<String> labels = request.output().labels();
        for (int item = 0; item < items; item++) {
            int base = item * classes;
            Integer[] ranking = new Integer[classes];
            Arrays.setAll(ranking, index -> index);
            // a stable sort: of equal values the lower index comes first
            Arrays.sort(ranking, byValue(tensor, base).reversed());
            for (int k = 0; k < count; k++) {
                int index = ranking[k];
                String value = tensor.text(base + index);
                // the 10 of the documents is "10:2", whatever the datatype
                if (value.endsWith(".0")) value = value.substring(0, value.length() - 2);
                String label = index < labels.size() ? ":" + labels.get(index) : "";
                result.set(item * count + k, (value + ":" + index + label).getBytes(StandardCharsets.UTF_8));
            }
        }
        return result;
    }

    /** "compared using the output tensor's data type": UINT64 unsigned, and -0 equal to 0. */
    private static Comparator<Integer> byValue(Tensor tensor, int base) {
        if (tensor.type == Datatype.UINT64) return (a, b) -> Long.compareUnsigned(tensor.integer(base + a), tensor.integer(base + b));
        if (tensor.type.integral) return (a, b) -> Long.compare(tensor.integer(base + a), tensor.integer(base + b));
        return (a, b) -> Double.compare(tensor.real(base + a) + 0.0, tensor.real(base + b) + 0.0);
    }
}
