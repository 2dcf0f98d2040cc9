import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import triton.client.InferInput;
import triton.client.InferRequestedOutput;
import triton.client.InferResult;
import triton.client.InferenceServerClient;
import triton.client.InferenceServerClient.InferArguments;
import triton.client.pojo.IOTensor;

/** The adapter of Triton's Java client: a JSON object a line. */
public final class Adapter {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** The clients that no thread uses now, by address and timeout: its documentation asks for one in each thread. */
  private static final Map<String, Queue<InferenceServerClient>> IDLE = new HashMap<>();

  public static void main(String[] arguments) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    ExecutorService threads = Executors.newCachedThreadPool();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(JSON.writeValueAsString(answer(JSON.readTree(line), threads)));
      out.flush();
    }
    System.exit(0);
  }

  private static ObjectNode answer(JsonNode command, ExecutorService threads) throws Exception {
    ObjectNode said = JSON.createObjectNode().set("seq", command.get("seq"));
    if (command.get("command").textValue().equals("hello")) {
      said.putObject("client").put("name", "triton.client (Java)").put("version", "0.0.1").put("language", "Java")
          .putArray("transports").add("http");
      return said;
    }
    List<Future<JsonNode>> futures = new ArrayList<>();
    for (JsonNode inference : command.get("inferences")) {
      Future<JsonNode> future = threads.submit(() -> inferAlone(command, inference));
      if (!command.get("at_once").booleanValue()) {
        future.get();
      }
      futures.add(future);
    }
    ArrayNode results = said.putArray("results");
    for (Future<JsonNode> future : futures) {
      results.add(future.get());
    }
    return said;
  }

  /** Makes an inference with a client that nobody else uses. */
  private static JsonNode inferAlone(JsonNode command, JsonNode inference) throws Exception {
    String address = command.get("address").textValue().substring("http://".length());
    int timeout = (int) (command.get("timeout_s").doubleValue() * 1000);
    Queue<InferenceServerClient> idle;
    InferenceServerClient client;
    synchronized (IDLE) {
      idle = IDLE.computeIfAbsent(timeout + " " + address, key -> new ArrayDeque<>());
      client = idle.poll();
    }
    if (client == null) {
      client = new InferenceServerClient(address, timeout, timeout);
    }
    try {
      return infer(client, inference);
    } finally {
      synchronized (IDLE) {
        idle.add(client);
      }
    }
  }

  private static JsonNode infer(InferenceServerClient client, JsonNode inference) {
    ObjectNode said = JSON.createObjectNode();
    try {
      InferResult result = client.infer(arguments(inference));
      ArrayNode outputs = said.putArray("outputs");
      for (String name : result.getOutputs()) {
        outputs.add(output(result, result.getResponse().getOutputByName(name)));
      }
      if (result.getResponse().getId() != null) {
        said.put("id", result.getResponse().getId());
      }
      return said;
    } catch (UnsupportedException unsupported) {
      return said.put("cannot", unsupported.getMessage());
    } catch (Exception error) {
      said.removeAll().putObject("error").put("message", String.valueOf(error));
      return said;
    }
  }

  private static InferArguments arguments(JsonNode inference) throws UnsupportedException {
    Tensors.refuse(inference, "raw", "no raw requests");
    Tensors.refuse(inference, "coding", "no compressed requests");
    Tensors.refuse(inference, "accepts", "no compressed answers");
    List<InferInput> inputs = new ArrayList<>();
    for (JsonNode one : inference.get("inputs")) {
      inputs.add(Tensors.makeInput(one));
    }
    InferArguments made = new InferArguments(inference.get("model").textValue(), inputs, outputs(inference));
    if (inference.has("id")) {
      made.setRequestId(inference.get("id").textValue());
    }
    if (inference.has("version")) {
      made.setModelVersion(inference.get("version").textValue());
    }
    return made;
  }

  /** Returns the requested outputs; without any, the client asks for binary data of all. */
  private static List<InferRequestedOutput> outputs(JsonNode inference) throws UnsupportedException {
    boolean isListed = inference.has("outputs");
    if (inference.has("all_outputs") && (isListed || !inference.get("all_outputs").textValue().equals("binary"))) {
      throw new UnsupportedException("no binary_data_output of the caller's choice");
    }
    List<InferRequestedOutput> outputs = new ArrayList<>();
    for (JsonNode one : isListed ? inference.get("outputs") : JSON.createArrayNode()) {
      boolean isBinary = !one.has("form") || one.get("form").textValue().equals("binary");
      outputs.add(new InferRequestedOutput(one.get("name").textValue(), isBinary, one.path("classes").asInt(0)));
    }
    return outputs;
  }

  private static ObjectNode output(InferResult result, IOTensor tensor) {
    ObjectNode one = JSON.createObjectNode().put("name", tensor.getName());
    byte[] data = Tensors.readOutput(result, tensor);
    if (data == null) {
      return one.put("cannot", "no accessor for " + tensor.getDatatype());
    }
    one.put("datatype", tensor.getDatatype().name()).put("data", data);
    ArrayNode shape = one.putArray("shape");
    for (long dimension : tensor.getShape()) {
      shape.add(dimension);
    }
    return one;
  }
}
