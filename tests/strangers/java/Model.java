import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** A model: its signature, and how each output is computed. */
record Model(String name, boolean batching, List<Port> inputs, List<Output> outputs) {
    private static final int MAX_BATCH = 8;

    /** One output, computed from the checked inputs; an output nobody requested is never computed. */
    interface Compute {
        Tensor apply(Map<String, Tensor> inputs);
    }

    /** A tensor of the signature; dims are the model's own, without a batch dimension, -1 is variable. */
    record Port(String name, Datatype type, long[] dims) {
    }

    record Output(Port port, Compute compute, List<String> labels) {
    }

    /** "the shape and data must represent the full shape and contents of the entire batch" (OIP). */
    long[] fullShape(Port port, long batch) {
        if (!batching) return port.dims().clone();
        long[] shape = new long[port.dims().length + 1];
        shape[0] = batch;
        System.arraycopy(port.dims(), 0, shape, 1, port.dims().length);
        return shape;
    }

    void checkShape(Port input, long[] shape) {
        long[] expected = fullShape(input, -1);
        boolean fits = shape.length == expected.length;
        for (int i = 0; fits && i < shape.length; i++) fits = expected[i] == -1 || expected[i] == shape[i];
        if (!fits)
            throw Refusal.bad("input '%s' takes the shape %s, not %s", input.name(), Arrays.toString(expected), Tensor.text(shape));
        if (batching && (shape[0] < 1 || shape[0] > MAX_BATCH))
            throw Refusal.bad("input '%s' takes a batch of 1 to %d, not %s", input.name(), MAX_BATCH, Long.toUnsignedString(shape[0]));
    }

    /** The shape of a raw binary request, "deduced from the byte size of the binary data" (Triton). */
    long[] rawShape(int size) {
        if (inputs.size() != 1) throw Refusal.bad("model '%s' has %d inputs, a raw binary request needs exactly 1", name, inputs.size());
        Port input = inputs.get(0);
        // "if the model supports batching, the request will be treated as batch-1 request"
        long[] shape = fullShape(input, 1);
        if (input.type() == Datatype.BYTES) {
            if (!Arrays.equals(input.dims(), new long[] {1}))
                throw Refusal.bad("a raw binary request with BYTES needs a model of shape [1], '%s' has %s", name, Arrays.toString(input.dims()));
            return shape;
        }
        if (Arrays.stream(shape).filter(d -> d == -1).count() > 1)
            throw Refusal.bad("model '%s' has more than one variable dimension, which a raw binary request cannot tell", name);
        long unit = input.type().size;
        for (long d : shape) if (d != -1) unit *= d;
        for (int i = 0; i < shape.length; i++) {
            if (shape[i] != -1) continue;
            if (size % unit != 0) throw Refusal.bad("%d bytes do not fill the shape %s of %s", size, Arrays.toString(shape), input.type());
            shape[i] = size / unit;
        }
        return shape;
    }
}
