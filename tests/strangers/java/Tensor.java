import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A tensor in row-major order: the elements of BYTES as an array each, everything else in the
 * little-endian form of the binary tensor data extension. A dimension is an unsigned 64-bit
 * integer (OIP, Request Input); larger than an array only where another dimension is 0.
 */
final class Tensor {
    final Datatype type;
    final long[] shape;
    final int count;
    private final ByteBuffer data;
    private final byte[][] elements;

    private Tensor(Datatype type, long[] shape, int count, ByteBuffer data, byte[][] elements) {
        this.type = type;
        this.shape = shape;
        this.count = count;
        this.data = data == null ? null : data.order(ByteOrder.LITTLE_ENDIAN);
        this.elements = elements;
    }

    /** A tensor of zeros (or of empty strings) to be filled. */
    Tensor(Datatype type, long... shape) {
        this(type, shape, count(shape),
                type == Datatype.BYTES ? null : ByteBuffer.allocate(count(shape) * type.size),
                type == Datatype.BYTES ? new byte[count(shape)][] : null);
    }

    static int count(long[] shape) {
        long count = 1;
        for (long dimension : shape) if (dimension == 0) return 0;
        for (long dimension : shape) {
            if (Long.compareUnsigned(dimension, Integer.MAX_VALUE) > 0) count = Long.MAX_VALUE;
            else if (count <= Integer.MAX_VALUE) count *= dimension;
        }
        // eight bytes an element must still fit a Java array
        if (count > Integer.MAX_VALUE / 8) throw Refusal.bad("a tensor of shape %s is too large", text(shape));
        return (int) count;
    }

    /** The same in messages and in JSON. */
    static String text(long[] shape) {
        return Arrays.stream(shape).mapToObj(Long::toUnsignedString).toList().toString();
    }

    // ---- elements -----------------------------------------------------------------------------

    byte[] bytes(int i) {
        return elements[i];
    }

    void set(int i, byte[] value) {
        elements[i] = value;
    }

    /** The element of an integral datatype or BOOL; a UINT64 in the bits of the long. */
    long integer(int i) {
        switch (type) {
            case BOOL: case INT8: return data.get(i);
            case UINT8: return data.get(i) & 0xff;
            case INT16: return data.getShort(2 * i);
            case UINT16: return data.getShort(2 * i) & 0xffff;
            case INT32: return data.getInt(4 * i);
            case UINT32: return data.getInt(4 * i) & 0xffffffffL;
            case INT64: case UINT64: return data.getLong(8 * i);
            default: throw new IllegalStateException(type + " is not integral");
        }
    }

    /** Sets the low bits, which is the element of any datatype of fixed size. */
    void setBits(int i, long bits) {
        switch (type.size) {
            case 1: data.put(i, (byte) bits); break;
            case 2: data.putShort(2 * i, (short) bits); break;
            case 4: data.putInt(4 * i, (int) bits); break;
            default: data.putLong(8 * i, bits);
        }
    }

    double real(int i) {
        switch (type) {
            case FP16: return Half.fromFp16(data.getShort(2 * i));
            case BF16: return Half.fromBf16(data.getShort(2 * i));
            case FP32: return data.getFloat(4 * i);
            case FP64: return data.getDouble(8 * i);
            case UINT64: throw new IllegalStateException("a UINT64 is not exact as a double");
            default: return integer(i);
        }
    }

    void setReal(int i, double value) {
        switch (type) {
            case FP16: setBits(i, Half.toFp16((float) value)); break;
            case BF16: setBits(i, Half.toBf16((float) value)); break;
            case FP32: data.putFloat(4 * i, (float) value); break;
            case FP64: data.putDouble(8 * i, value); break;
            default: throw new IllegalStateException(type + " is not a floating-point datatype");
        }
    }

    /** The element as a JSON number, true or false: no more digits than its datatype needs. */
    String text(int i) {
        switch (type) {
            case FP16: case BF16: case FP32: case FP64:
                double real = real(i);
                // Float.toString(0x1p31f) is 2.14748365E9, which read as a double is another number
                if (real != 0 && Math.abs(real) < 1e15 && real == (long) real) return (long) real + ".0";
                return type == Datatype.FP64 ? Double.toString(real) : Float.toString((float) real);
            case BOOL: return Boolean.toString(integer(i) != 0);
            default: return type.signed ? Long.toString(integer(i)) : Long.toUnsignedString(integer(i));
        }
    }

    // ---- binary form --------------------------------------------------------------------------

    static Tensor fromBinary(String name, Datatype type, long[] shape, byte[] body, int offset, int length) {
        int count = count(shape);
        if (type == Datatype.BYTES) return bytesFromBinary(name, shape, count, ByteBuffer.wrap(body, offset, length));
        if ((long) count * type.size != length)
            throw Refusal.bad("input '%s': %s %s takes %d bytes of binary data, not %d",
                    name, type, text(shape), (long) count * type.size, length);
        byte[] data = Arrays.copyOfRange(body, offset, offset + length);
        if (type == Datatype.BOOL)
            for (byte b : data)
                if (b != 0 && b != 1) throw Refusal.bad("input '%s': a BOOL is a byte of value 0 or 1, not %d", name, b & 0xff);
        return new Tensor(type, shape, count, ByteBuffer.wrap(data), null);
    }

    private static Tensor bytesFromBinary(String name, long[] shape, int count, ByteBuffer data) {
        data.order(ByteOrder.LITTLE_ENDIAN);
        if (data.remaining() < 4L * count)
            throw Refusal.bad("input '%s': %d bytes are too few for %d elements", name, data.remaining(), count);
        byte[][] elements = new byte[count][];
        for (int i = 0; i < count; i++) {
            long size = data.remaining() < 4 ? -1 : Integer.toUnsignedLong(data.getInt());
            if (size < 0 || size > data.remaining())
                throw Refusal.bad("input '%s': the binary data end within element %d", name, i);
            data.get(elements[i] = new byte[(int) size]);
        }
        if (data.hasRemaining())
            throw Refusal.bad("input '%s': %d bytes are left after the %d elements of shape %s",
                    name, data.remaining(), count, text(shape));
        return new Tensor(Datatype.BYTES, shape, count, null, elements);
    }

    byte[] toBinary() {
        if (type != Datatype.BYTES) return data.array();
        long size = 4L * count;
        for (byte[] element : elements) size += element.length;
        ByteBuffer out = ByteBuffer.allocate(Math.toIntExact(size)).order(ByteOrder.LITTLE_ENDIAN);
        for (byte[] element : elements) out.putInt(element.length).put(element);
        return out.array();
    }

    // ---- JSON form ----------------------------------------------------------------------------

    static Tensor fromJson(String name, Datatype type, long[] shape, List<?> data) {
        if (!type.hasJson())
            throw Refusal.bad("input '%s': %s has no JSON representation, send it as binary data", name, type);
        List<?> flat = data;
        // "in their nature multi-dimensional representation, or as a flattened one" (OIP, Tensor Data)
        if (data.stream().anyMatch(List.class::isInstance)) {
            List<Object> all = new ArrayList<>();
            flatten(name, shape, 0, data, all);
            flat = all;
        }
        int count = count(shape);
        if (flat.size() != count)
            throw Refusal.bad("input '%s': shape %s has %d elements, the data have %d", name, text(shape), count, flat.size());
        Tensor tensor = new Tensor(type, shape);
        String what = "an element of input '" + name + "'";
        int i = 0;
        for (Object value : flat) tensor.setJson(i++, value, what);
        return tensor;
    }

    private static void flatten(String name, long[] shape, int depth, List<?> data, List<Object> out) {
        if (depth >= shape.length || data.size() != shape[depth])
            throw Refusal.bad("input '%s': the nested data do not have the shape %s", name, text(shape));
        boolean last = depth == shape.length - 1;
        for (Object element : data) {
            if (element instanceof List<?> list) flatten(name, shape, depth + 1, list, out);
            else if (last) out.add(element);
            else throw Refusal.bad("input '%s': the nested data are ragged", name);
        }
    }

    /** "The server can decide to coerce each element or return an error" (OIP): nothing is coerced. */
    private void setJson(int i, Object value, String what) {
        if (type == Datatype.BYTES) {
            elements[i] = Json.utf8(Json.string(value, what));
        } else if (type == Datatype.BOOL) {
            setBits(i, Json.bool(value, what) ? 1 : 0);
        } else if (type.integral) {
            setBits(i, Json.integer(value, 8 * type.size, type.signed, what));
        } else {
            if (!(value instanceof Json.Num num)) throw Refusal.bad("%s must be a number", what);
            // an FP32 straight from the decimal text: by way of a double it would be rounded twice
            double real = type == Datatype.FP32 ? Float.parseFloat(num.text()) : Double.parseDouble(num.text());
            if (Double.isInfinite(real)) throw Refusal.bad("%s is out of the range of %s", what, type);
            setReal(i, real);
        }
    }

    /** The data flattened, as in the examples of the OIP. */
    void appendJson(String name, StringBuilder out) {
        if (!type.hasJson())
            throw Refusal.bad("output '%s': %s has no JSON representation, request it as binary data", name, type);
        out.append('[');
        for (int i = 0; i < count; i++) {
            if (i > 0) out.append(',');
            if (type == Datatype.BYTES) {
                try {
                    Json.quote(out, Json.utf8(elements[i], 0, elements[i].length));
                } catch (CharacterCodingException e) {
                    throw Refusal.bad("output '%s': element %d is not UTF-8 and cannot be JSON, request it as binary data", name, i);
                }
            } else {
                if (!type.integral && type != Datatype.BOOL && !Double.isFinite(real(i)))
                    throw Refusal.bad("output '%s': element %d is %s and cannot be JSON, request it as binary data", name, i, text(i));
                out.append(text(i));
            }
        }
        out.append(']');
    }
}
