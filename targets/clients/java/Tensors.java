import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import triton.client.BinaryProtocol;
import triton.client.InferInput;
import triton.client.InferResult;
import triton.client.pojo.DataType;
import triton.client.pojo.IOTensor;

/** Tensors of the commands, which are binary data, as Java's arrays. */
final class Tensors {
  private Tensors() {}

  /** Refuses an inference with an option that the client lacks. */
  static void refuse(JsonNode inference, String option, String reason) throws UnsupportedException {
    if (inference.has(option)) {
      throw new UnsupportedException(reason);
    }
  }

  static InferInput makeInput(JsonNode one) throws UnsupportedException {
    long[] shape = new long[one.get("shape").size()];
    for (int k = 0; k < shape.length; k++) {
      shape[k] = one.get("shape").get(k).longValue();
    }
    if (one.get("datatype").textValue().equals("BF16")) {
      throw new UnsupportedException("no BF16");
    }
    DataType datatype = DataType.valueOf(one.get("datatype").textValue());
    InferInput input = new InferInput(one.get("name").textValue(), shape, datatype);
    byte[] octets = Base64.getDecoder().decode(one.get("data").textValue());
    setData(input, datatype, octets, one.get("form").textValue().equals("binary"));
    return input;
  }

  private static void setData(InferInput input, DataType datatype, byte[] octets, boolean isBinary)
      throws UnsupportedException {
    ByteBuffer data = ByteBuffer.wrap(octets).order(ByteOrder.LITTLE_ENDIAN);
    switch (datatype) {
      case BOOL -> {
        boolean[] truths = new boolean[octets.length];
        for (int k = 0; k < truths.length; k++) {
          truths[k] = octets[k] != 0;
        }
        input.setData(truths, isBinary);
      }
      case INT8, UINT8 -> input.setData(octets, isBinary);
      case INT16, UINT16 -> {
        short[] elements = new short[octets.length / 2];
        data.asShortBuffer().get(elements);
        input.setData(elements, isBinary);
      }
      case INT32, UINT32 -> {
        int[] elements = new int[octets.length / 4];
        data.asIntBuffer().get(elements);
        input.setData(elements, isBinary);
      }
      case INT64, UINT64 -> {
        long[] elements = new long[octets.length / 8];
        data.asLongBuffer().get(elements);
        input.setData(elements, isBinary);
      }
      case FP32 -> {
        float[] elements = new float[octets.length / 4];
        data.asFloatBuffer().get(elements);
        input.setData(elements, isBinary);
      }
      case FP64 -> {
        double[] elements = new double[octets.length / 8];
        data.asDoubleBuffer().get(elements);
        input.setData(elements, isBinary);
      }
      case BYTES -> input.setData(readStrings(data), isBinary);
      default -> throw new UnsupportedException("no setData for " + datatype);
    }
  }

  /** Returns BYTES elements as strings, which is all that the client takes. */
  private static String[] readStrings(ByteBuffer data) throws UnsupportedException {
    List<String> strings = new ArrayList<>();
    while (data.hasRemaining()) {
      ByteBuffer element = data.slice(data.position() + 4, data.getInt(data.position()));
      data.position(data.position() + 4 + element.remaining());
      try {
        strings.add(StandardCharsets.UTF_8.newDecoder().decode(element).toString());
      } catch (CharacterCodingException error) {
        throw new UnsupportedException("elements of BYTES are strings");
      }
    }
    return strings.toArray(new String[0]);
  }

  /** Returns an output as binary data; null if the client has no accessor for its datatype. */
  static byte[] readOutput(InferResult result, IOTensor tensor) {
    String name = tensor.getName();
    DataType datatype = tensor.getDatatype();
    return switch (datatype) {
      case BOOL -> BinaryProtocol.toBytes(datatype, result.getOutputAsBool(name));
      case INT8, UINT8 -> BinaryProtocol.toBytes(datatype, result.getOutputAsByte(name));
      case INT16, UINT16 -> BinaryProtocol.toBytes(datatype, result.getOutputAsShort(name));
      case INT32, UINT32 -> BinaryProtocol.toBytes(datatype, result.getOutputAsInt(name));
      case INT64, UINT64 -> BinaryProtocol.toBytes(datatype, result.getOutputAsLong(name));
      case FP32 -> BinaryProtocol.toBytes(datatype, result.getOutputAsFloat(name));
      case FP64 -> BinaryProtocol.toBytes(datatype, result.getOutputAsDouble(name));
      default -> null;
    };
  }
}
