import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The table of the models served. */
final class Models {
    /** What emit gives at most, a limit of this server. */
    private static final int MAX_EMITTED = 2_000_000;
    private static final float[] DOCUMENTED_SCORES = {1.1f, 3.3f, 0.5f, 2.4f};

    static final Map<String, Model> ALL = new LinkedHashMap<>();

    private Models() {
    }

    static {
        for (Datatype type : Datatype.values())
            model("identity_" + type.name().toLowerCase(), in("INPUT", type, -1), same(type, -1));
        model("rank0", in("INPUT", Datatype.INT32), same(Datatype.INT32));
        model("rank2", in("INPUT", Datatype.INT32, -1, -1), same(Datatype.INT32, -1, -1));
        model("rank3", in("INPUT", Datatype.INT16, -1, -1, -1), same(Datatype.INT16, -1, -1, -1));
        model("rank4", in("INPUT", Datatype.FP64, -1, -1, -1, -1), same(Datatype.FP64, -1, -1, -1, -1));
        model("rank2_bytes", in("INPUT", Datatype.BYTES, -1, -1), same(Datatype.BYTES, -1, -1));
        batching("batching", in("INPUT", Datatype.INT32, 3), same(Datatype.INT32, 3));
        model("fixed", in("INPUT", Datatype.INT32, 2, 3), same(Datatype.INT32, 2, 3));
        model("multi",
                List.of(in("IN_INT64", Datatype.INT64, -1), in("IN_BOOL", Datatype.BOOL, -1),
                        in("IN_FP32", Datatype.FP32, -1), in("IN_BYTES", Datatype.BYTES, -1)),
                out("OUT_INT64", Datatype.INT64, copy("IN_INT64"), -1), out("OUT_BOOL", Datatype.BOOL, copy("IN_BOOL"), -1),
                out("OUT_FP32", Datatype.FP32, copy("IN_FP32"), -1), out("OUT_BYTES", Datatype.BYTES, copy("IN_BYTES"), -1));
        model("emit", in("COUNTS", Datatype.INT32, 2),
                out("NUMBERS", Datatype.INT32, Models::numbers, -1), out("TEXTS", Datatype.BYTES, Models::texts, -1));

        model("cast_int32_fp32", in("INPUT", Datatype.INT32, -1), cast(Datatype.FP32, -1));
        model("cast_fp16_fp32", in("INPUT", Datatype.FP16, -1), cast(Datatype.FP32, -1));
        model("cast_fp32_fp16", in("INPUT", Datatype.FP32, -1), cast(Datatype.FP16, -1));
        model("cast_bf16_fp32", in("INPUT", Datatype.BF16, -1), cast(Datatype.FP32, -1));
        model("cast_fp32_bf16", in("INPUT", Datatype.FP32, -1), cast(Datatype.BF16, -1));
        model("add_sub", List.of(in("B", Datatype.INT32, -1), in("A", Datatype.INT32, -1)),
                out("SUM", Datatype.INT32, inputs -> combine(inputs, 1), -1),
                out("DIFFERENCE", Datatype.INT32, inputs -> combine(inputs, -1), -1));
        model("string_length", in("INPUT", Datatype.BYTES, -1), out("LENGTH", Datatype.INT32, Models::lengths, -1));
        model("weighted_sum", in("INPUT", Datatype.INT32, -1, -1), out("OUTPUT", Datatype.INT64, Models::weightedSum, 1));

        model("raw_fixed", in("INPUT", Datatype.INT32, 2, 2), cast(Datatype.FP32, 2, 2));
        model("raw_variable", in("INPUT", Datatype.INT32, -1, 2), cast(Datatype.FP32, -1, 2));
        model("raw_middle", in("INPUT", Datatype.INT16, 2, -1, 3), same(Datatype.INT16, 2, -1, 3));
        model("raw_two_variable", in("INPUT", Datatype.INT32, -1, -1), same(Datatype.INT32, -1, -1));
        model("raw_bytes_one", in("INPUT", Datatype.BYTES, 1), same(Datatype.BYTES, 1));
        model("raw_bytes_two", in("INPUT", Datatype.BYTES, 2), same(Datatype.BYTES, 2));
        model("raw_bytes_variable", in("INPUT", Datatype.BYTES, -1), same(Datatype.BYTES, -1));
        model("raw_two_inputs", List.of(in("INPUT0", Datatype.INT32, -1), in("INPUT1", Datatype.INT32, -1)),
                out("OUTPUT0", Datatype.INT32, copy("INPUT0"), -1), out("OUTPUT1", Datatype.INT32, copy("INPUT1"), -1));
        model("raw_two_outputs", in("INPUT", Datatype.INT32, -1),
                out("NUMBER", Datatype.INT32, copy("INPUT"), -1), out("TEXT", Datatype.BYTES, Models::decimals, -1));
        batching("raw_batching", in("INPUT", Datatype.INT32, 4), cast(Datatype.FP32, 4));
        batching("raw_batching_variable", in("INPUT", Datatype.INT32, -1), cast(Datatype.FP32, -1));

        Model.Port scores = in("INPUT", Datatype.FP32, 4);
        Model.Output plain = out("SCORES", Datatype.FP32, copy("INPUT"), 4);
        model("scores", scores, plain);
        model("scores_labelled", scores, labelled(plain, "cat", "dog", "bird", "fish"));
        model("scores_some_labels", scores, labelled(plain, "cat", "dog"));
        model("scores_odd_labels", scores, labelled(plain, "a:b:c", "two words", "F\u00fc\u00dfe", "\u732b"));
        batching("scores_batching", scores, plain);
        batching("scores_batching_labelled", scores, labelled(plain, "cat", "dog", "bird", "fish"));
        model("scores_rank2", in("INPUT", Datatype.FP32, 2, 3), out("SCORES", Datatype.FP32, copy("INPUT"), 2, 3));
        batching("scores_batching_rank2", in("INPUT", Datatype.FP32, 2, 2),
                labelled(out("SCORES", Datatype.FP32, copy("INPUT"), 2, 2), "cat", "dog", "bird", "fish"));
        model("scores_two_outputs", List.of(in("IN_SCORES", Datatype.FP32, 4), in("IN_RANKS", Datatype.INT32, 3)),
                out("SCORES", Datatype.FP32, copy("IN_SCORES"), 4),
                labelled(out("RANKS", Datatype.INT32, copy("IN_RANKS"), 3), "low", "middle", "high"));

        model("documented_binary", List.of(in("input0", Datatype.UINT32, 2, 2), in("input1", Datatype.BOOL, 3)),
                out("output0", Datatype.FP32, inputs -> pairs(Datatype.FP32, inputs.get("input1"), inputs.get("input0")), 3, 2));
        model("documented_mixed",
                List.of(in("input0", Datatype.FP16, 2, 2), in("input1", Datatype.UINT32, 2, 2), in("input2", Datatype.BOOL, 3)),
                out("output0", Datatype.FP16, inputs -> pairs(Datatype.FP16, inputs.get("input2"), inputs.get("input0")), 3, 2),
                out("output1", Datatype.FP32, Models::realSum, 2, 2));
        model("documented_all_outputs", in("input_tensor", Datatype.FP32, 1, 2),
                out("output_tensor0", Datatype.FP16, pick("input_tensor", Datatype.FP16, new int[] {0, 1, 1, 0, -1, -1}, 3, 2), 3, 2),
                out("output_tensor1", Datatype.FP32, pick("input_tensor", Datatype.FP32, new int[] {0, 1, 1, 0}, 2, 2), 2, 2));
        model("documented_raw", in("input", Datatype.FP32, 4),
                out("output0", Datatype.FP32, pick("input", Datatype.FP32, new int[] {0, 1, 2}, 3, 1), 3, 1),
                out("output1", Datatype.FP32, pick("input", Datatype.FP32, new int[] {1, 2, 3}, 3, 1), 3, 1));
        Model.Port indices = in("input0", Datatype.UINT32, 2, 2);
        Model.Output documented = out("output0", Datatype.FP32, Models::documentedScores, 4);
        model("documented_scores", indices, documented);
        model("documented_scores_labelled", indices,
                labelled(documented, "index_0_label", "index_1_label", "index_2_label", "index_3_label"));
    }

    // ---- the words of the table ---------------------------------------------------------------

    private static void model(String name, Model.Port input, Model.Output... outputs) {
        model(name, List.of(input), outputs);
    }

    private static void model(String name, List<Model.Port> inputs, Model.Output... outputs) {
        ALL.put(name, new Model(name, false, inputs, List.of(outputs)));
    }

    private static void batching(String name, Model.Port input, Model.Output output) {
        ALL.put(name, new Model(name, true, List.of(input), List.of(output)));
    }

    private static Model.Port in(String name, Datatype type, long... dims) {
        return new Model.Port(name, type, dims);
    }

    private static Model.Output out(String name, Datatype type, Model.Compute compute, long... dims) {
        return new Model.Output(new Model.Port(name, type, dims), compute, List.of());
    }

    private static Model.Output labelled(Model.Output output, String... labels) {
        return new Model.Output(output.port(), output.compute(), List.of(labels));
    }

    private static Model.Output same(Datatype type, long... dims) {
        return out("OUTPUT", type, copy("INPUT"), dims);
    }

    private static Model.Output cast(Datatype type, long... dims) {
        return out("OUTPUT", type, inputs -> {
            Tensor input = inputs.get("INPUT");
            Tensor output = new Tensor(type, input.shape);
            for (int i = 0; i < input.count; i++) output.setReal(i, input.real(i));
            return output;
        }, dims);
    }

    // ---- compute functions --------------------------------------------------------------------

    /** Tensors are not changed once a function has returned them, so the input itself will do. */
    private static Model.Compute copy(String input) {
        return inputs -> inputs.get(input);
    }

    /** The elements of the input at these places; 0 where the place is negative. */
    private static Model.Compute pick(String input, Datatype type, int[] places, long... shape) {
        return inputs -> {
            Tensor output = new Tensor(type, shape);
            for (int i = 0; i < places.length; i++)
                if (places[i] >= 0) output.setReal(i, inputs.get(input).real(places[i]));
            return output;
        };
    }

    private static int emitted(Map<String, Tensor> inputs, int which) {
        long count = inputs.get("COUNTS").integer(which);
        if (count < 0 || count > MAX_EMITTED) throw Refusal.bad("COUNTS are 0 to %d, not %d", MAX_EMITTED, count);
        return (int) count;
    }

    private static Tensor numbers(Map<String, Tensor> inputs) {
        Tensor output = new Tensor(Datatype.INT32, emitted(inputs, 0));
        for (int i = 0; i < output.count; i++) output.setBits(i, i + 1);
        return output;
    }

    private static Tensor texts(Map<String, Tensor> inputs) {
        Tensor output = new Tensor(Datatype.BYTES, emitted(inputs, 1));
        for (int i = 0; i < output.count; i++) output.set(i, ascii("t" + (i + 1)));
        return output;
    }

    private static Tensor decimals(Map<String, Tensor> inputs) {
        Tensor input = inputs.get("INPUT");
        Tensor output = new Tensor(Datatype.BYTES, input.shape);
        for (int i = 0; i < input.count; i++) output.set(i, ascii(input.text(i)));
        return output;
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }

    private static Tensor lengths(Map<String, Tensor> inputs) {
        Tensor input = inputs.get("INPUT");
        Tensor output = new Tensor(Datatype.INT32, input.shape);
        for (int i = 0; i < input.count; i++) output.setBits(i, input.bytes(i).length);
        return output;
    }

    /** A + sign * B; a sum that is no INT32 is refused rather than wrapped around. */
    private static Tensor combine(Map<String, Tensor> inputs, int sign) {
        Tensor a = inputs.get("A");
        Tensor b = inputs.get("B");
        if (a.count != b.count) throw Refusal.bad("A has %d elements and B has %d", a.count, b.count);
        Tensor output = new Tensor(Datatype.INT32, a.shape);
        for (int i = 0; i < a.count; i++) {
            long value = a.integer(i) + sign * b.integer(i);
            if (value != (int) value) throw Refusal.bad("element %d of the result, %d, is no INT32", i, value);
            output.setBits(i, value);
        }
        return output;
    }

    private static Tensor weightedSum(Map<String, Tensor> inputs) {
        Tensor input = inputs.get("INPUT");
        Tensor output = new Tensor(Datatype.INT64, 1);
        long sum = 0;
        try {
            for (int i = 0; i < input.count; i++) sum = Math.addExact(sum, (i + 1L) * input.integer(i));
        } catch (ArithmeticException e) {
            throw Refusal.bad("the sum is no INT64");
        }
        output.setBits(0, sum);
        return output;
    }

    /** Row k is [first[k], second[k]], for as many rows as first has elements. */
    private static Tensor pairs(Datatype type, Tensor first, Tensor second) {
        Tensor output = new Tensor(type, first.count, 2);
        for (int i = 0; i < first.count; i++) {
            output.setReal(2 * i, first.real(i));
            output.setReal(2 * i + 1, second.real(i));
        }
        return output;
    }

    private static Tensor realSum(Map<String, Tensor> inputs) {
        Tensor a = inputs.get("input0");
        Tensor b = inputs.get("input1");
        Tensor output = new Tensor(Datatype.FP32, a.shape);
        for (int i = 0; i < a.count; i++) output.setReal(i, a.real(i) + b.real(i));
        return output;
    }

    private static Tensor documentedScores(Map<String, Tensor> inputs) {
        Tensor input = inputs.get("input0");
        Tensor output = new Tensor(Datatype.FP32, 4);
        for (int i = 0; i < 4; i++) {
            long place = input.integer(i);
            if (place < 1 || place > 4) throw Refusal.bad("an element of input0 is 1 to 4, not %d", place);
            output.setReal(i, DOCUMENTED_SCORES[(int) place - 1]);
        }
        return output;
    }
}
