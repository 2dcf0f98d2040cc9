import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Elements of tensors, from binary data to JSON and back. */
final class Codec {
    static final Map<String, Integer> SIZES = Map.ofEntries(
            Map.entry("BOOL", 1), Map.entry("UINT8", 1), Map.entry("INT8", 1), Map.entry("UINT16", 2),
            Map.entry("INT16", 2), Map.entry("FP16", 2), Map.entry("BF16", 2), Map.entry("UINT32", 4),
            Map.entry("INT32", 4), Map.entry("FP32", 4), Map.entry("UINT64", 8), Map.entry("INT64", 8),
            Map.entry("FP64", 8));

    private Codec() {
    }

    /** The number of elements of a shape; dimensions are unsigned. */
    static BigInteger count(long[] shape) {
        BigInteger count = BigInteger.ONE;
        for (long dimension : shape) {
            count = count.multiply(new BigInteger(Long.toUnsignedString(dimension)));
        }
        return count;
    }

    /** Throws unless the data fit the datatype and the shape. */
    static void check(String datatype, long[] shape, byte[] data) {
        BigInteger count = count(shape);
        if (datatype.equals("BYTES")) {
            int parts = split(data).size();
            if (!count.equals(BigInteger.valueOf(parts))) {
                throw new ProtocolException(parts + " elements instead of " + count);
            }
            return;
        }
        BigInteger size = BigInteger.valueOf(size(datatype));
        if (!count.multiply(size).equals(BigInteger.valueOf(data.length))) {
            throw new ProtocolException(data.length + " bytes for " + count + " elements of " + datatype);
        }
        if (datatype.equals("BOOL")) {
            for (byte one : data) {
                if (one != 0 && one != 1) {
                    throw new ProtocolException(one + " is no BOOL");
                }
            }
        }
    }

    static int size(String datatype) {
        Integer size = SIZES.get(datatype);
        if (size == null) {
            throw new ProtocolException("unknown datatype " + datatype);
        }
        return size;
    }

    /** The elements of the binary form of a BYTES tensor. */
    static List<byte[]> split(byte[] data) {
        ByteBuffer buffer = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
        List<byte[]> parts = new ArrayList<>();
        while (buffer.hasRemaining()) {
            if (buffer.remaining() < 4) {
                throw new ProtocolException("a length of BYTES is cut off");
            }
            long length = Integer.toUnsignedLong(buffer.getInt());
            if (length > buffer.remaining()) {
                throw new ProtocolException("an element of BYTES is cut off");
            }
            byte[] part = new byte[(int) length];
            buffer.get(part);
            parts.add(part);
        }
        return parts;
    }

    static byte[] join(List<byte[]> parts) {
        int size = 0;
        for (byte[] part : parts) {
            size = Math.addExact(size, Math.addExact(4, part.length));
        }
        ByteBuffer buffer = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
        for (byte[] part : parts) {
            buffer.putInt(part.length).put(part);
        }
        return buffer.array();
    }

    static String decodeUtf8(byte[] data, int from, int length) {
        try {
            return StandardCharsets.UTF_8.newDecoder().onMalformedInput(CodingErrorAction.REPORT)
                    .decode(ByteBuffer.wrap(data, from, length)).toString();
        } catch (CharacterCodingException error) {
            throw new ProtocolException("bytes that are not UTF-8");
        }
    }

    static byte[] encodeUtf8(String text) {
        try {
            ByteBuffer buffer = StandardCharsets.UTF_8.newEncoder().onMalformedInput(CodingErrorAction.REPORT)
                    .encode(CharBuffer.wrap(text));
            byte[] data = new byte[buffer.remaining()];
            buffer.get(data);
            return data;
        } catch (CharacterCodingException error) {
            throw new ProtocolException("a string with a lone surrogate");
        }
    }

    /** The elements as values for Json.write. */
    static List<Object> toJson(String datatype, byte[] data) {
        List<Object> items = new ArrayList<>();
        if (datatype.equals("BYTES")) {
            for (byte[] part : split(data)) {
                items.add(decodeUtf8(part, 0, part.length));
            }
            return items;
        }
        ByteBuffer buffer = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
        while (buffer.hasRemaining()) {
            items.add(switch (datatype) {
                case "BOOL" -> buffer.get() != 0;
                case "UINT8" -> Byte.toUnsignedInt(buffer.get());
                case "INT8" -> buffer.get();
                case "UINT16" -> Short.toUnsignedInt(buffer.getShort());
                case "INT16" -> buffer.getShort();
                case "UINT32" -> Integer.toUnsignedLong(buffer.getInt());
                case "INT32" -> buffer.getInt();
                case "UINT64" -> new Json.Num(Long.toUnsignedString(buffer.getLong()));
                case "INT64" -> buffer.getLong();
                case "FP16" -> finite((float) fromSmall(buffer.getShort(), 5));
                case "BF16" -> finite(Float.intBitsToFloat(buffer.getShort() << 16));
                case "FP32" -> finite(buffer.getFloat());
                case "FP64" -> finite(buffer.getDouble());
                default -> throw new ProtocolException("unknown datatype " + datatype);
            });
        }
        return items;
    }

    private static Float finite(float value) {
        if (!Float.isFinite(value)) {
            throw new ProtocolException("JSON cannot represent " + value);
        }
        return value;
    }

    private static Double finite(double value) {
        if (!Double.isFinite(value)) {
            throw new ProtocolException("JSON cannot represent " + value);
        }
        return value;
    }

    /** The binary data of a JSON array, flat or nested as the shape is. */
    static byte[] fromJson(String datatype, long[] shape, Object value) {
        if (!(value instanceof List<?> items)) {
            throw new ProtocolException("no array of data");
        }
        List<Object> flat = new ArrayList<>();
        if (items.stream().noneMatch(item -> item instanceof List<?>)) {
            boolean empty = items.isEmpty() && shape.length > 1 && shape[0] != 0;
            if (empty && count(shape).signum() != 0) {
                throw new ProtocolException("no data");
            }
            flat.addAll(items);
        } else {
            flatten(items, shape, 0, flat);
        }
        if (!count(shape).equals(BigInteger.valueOf(flat.size()))) {
            throw new ProtocolException(flat.size() + " elements instead of " + count(shape));
        }
        if (datatype.equals("BYTES")) {
            List<byte[]> parts = new ArrayList<>();
            for (Object item : flat) {
                if (!(item instanceof String text)) {
                    throw new ProtocolException(item + " is no string");
                }
                parts.add(encodeUtf8(text));
            }
            return join(parts);
        }
        ByteBuffer buffer = ByteBuffer.allocate(Math.multiplyExact(flat.size(), size(datatype)))
                .order(ByteOrder.LITTLE_ENDIAN);
        for (Object item : flat) {
            put(buffer, datatype, item);
        }
        return buffer.array();
    }

    private static void flatten(List<?> items, long[] shape, int depth, List<Object> flat) {
        if (depth >= shape.length || items.size() != shape[depth]) {
            throw new ProtocolException("the nesting of data is not that of the shape");
        }
        for (Object item : items) {
            if (depth < shape.length - 1) {
                if (!(item instanceof List<?> inner)) {
                    throw new ProtocolException("the nesting of data is not that of the shape");
                }
                flatten(inner, shape, depth + 1, flat);
            } else {
                flat.add(item);
            }
        }
    }

    private static void put(ByteBuffer buffer, String datatype, Object item) {
        if (datatype.equals("BOOL")) {
            if (!(item instanceof Boolean truth)) {
                throw new ProtocolException(item + " is no boolean");
            }
            buffer.put((byte) (truth ? 1 : 0));
            return;
        }
        if (!(item instanceof Json.Num number)) {
            throw new ProtocolException(item + " is no number");
        }
        String text = number.text();
        switch (datatype) {
            case "FP64" -> {
                double value = Double.parseDouble(text);
                if (Double.isInfinite(value)) {
                    throw new ProtocolException(text + " is out of range");
                }
                buffer.putDouble(value);
            }
            case "FP32" -> {
                float value = Float.parseFloat(text);
                if (Float.isInfinite(value)) {
                    throw new ProtocolException(text + " is out of range");
                }
                buffer.putFloat(value);
            }
            case "FP16" -> buffer.putShort(toSmall(Double.parseDouble(text), 5));
            case "BF16" -> buffer.putShort(toSmall(Double.parseDouble(text), 8));
            default -> {
                int bits = size(datatype) * 8;
                BigInteger value = number.integer();
                boolean fits = datatype.startsWith("U")
                        ? value.signum() >= 0 && value.bitLength() <= bits
                        : value.bitLength() < bits;
                if (!fits) {
                    throw new ProtocolException(text + " is no " + datatype);
                }
                switch (bits) {
                    case 8 -> buffer.put(value.byteValue());
                    case 16 -> buffer.putShort(value.shortValue());
                    case 32 -> buffer.putInt(value.intValue());
                    default -> buffer.putLong(value.longValue());
                }
            }
        }
    }

    /** The value of a float of 16 bits with so many exponent bits. */
    static double fromSmall(short word, int exponentBits) {
        int mantissaBits = 15 - exponentBits;
        int bias = (1 << exponentBits - 1) - 1;
        int exponent = word >> mantissaBits & (1 << exponentBits) - 1;
        int mantissa = word & (1 << mantissaBits) - 1;
        double value;
        if (exponent == (1 << exponentBits) - 1) {
            value = mantissa == 0 ? Double.POSITIVE_INFINITY : Double.NaN;
        } else if (exponent == 0) {
            value = Math.scalb((double) mantissa, 1 - bias - mantissaBits);
        } else {
            value = Math.scalb((double) (mantissa | 1 << mantissaBits), exponent - bias - mantissaBits);
        }
        return word < 0 ? -value : value;
    }

    /** Rounds to the nearest float of 16 bits, half to even. */
    static short toSmall(double value, int exponentBits) {
        int mantissaBits = 15 - exponentBits;
        int bias = (1 << exponentBits - 1) - 1;
        int sign = Double.doubleToRawLongBits(value) < 0 ? 0x8000 : 0;
        double magnitude = Math.abs(value);
        int exponent = Math.max(magnitude == 0 ? -2000 : Math.getExponent(magnitude), 1 - bias);
        if (exponent > bias) {
            throw new ProtocolException(value + " is out of range");
        }
        long steps = (long) Math.rint(Math.scalb(magnitude, mantissaBits - exponent));
        // A carry goes on into the exponent, and from subnormal to normal.
        long word = ((long) (exponent + bias - 1) << mantissaBits) + steps;
        if (word >= (long) ((1 << exponentBits) - 1) << mantissaBits) {
            throw new ProtocolException(value + " is out of range");
        }
        return (short) (sign | (int) word);
    }
}
