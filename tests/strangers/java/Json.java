import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A strict JSON (RFC 8259) reader and a writer. Values are Map, List, String, Boolean, null and
 * {@link Num}; a number stays the text it was written as until its datatype is known, so that
 * 64-bit integers are exact and an FP32 is rounded once.
 */
final class Json {
    private static final int MAX_DEPTH = 100;

    record Num(String source, int start, int end, boolean integer) {
        String text() {
            return source.substring(start, end);
        }
    }

    /** Something that writes itself, such as the data of a large tensor. */
    interface Fragment {
        void appendTo(StringBuilder out);
    }

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(byte[] bytes, int offset, int length) {
        String text;
        try {
            text = utf8(bytes, offset, length);
        } catch (CharacterCodingException e) {
            throw Refusal.bad("the JSON object is not UTF-8");
        }
        Json json = new Json(text);
        Object value = json.value();
        json.blanks();
        if (json.at < text.length()) throw json.fault("nothing more was expected after the JSON object");
        return value;
    }

    /** Unlike new String(bytes, UTF_8) this replaces nothing: bytes that are not UTF-8 are an exception. */
    static String utf8(byte[] bytes, int offset, int length) throws CharacterCodingException {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes, offset, length)).toString();
    }

    static byte[] utf8(String string) {
        try {
            ByteBuffer encoded = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(string));
            byte[] bytes = new byte[encoded.remaining()];
            encoded.get(bytes);
            return bytes;
        } catch (CharacterCodingException e) {
            throw Refusal.bad("a string contains half of a surrogate pair and has no UTF-8 form");
        }
    }

    // ---- typed access -------------------------------------------------------------------------

    static Map<?, ?> object(Object value, String what) {
        if (value instanceof Map<?, ?> map) return map;
        throw Refusal.bad("%s must be a JSON object", what);
    }

    static List<?> array(Object value, String what) {
        if (value instanceof List<?> list) return list;
        throw Refusal.bad("%s must be a JSON array", what);
    }

    static String string(Object value, String what) {
        if (value instanceof String string) return string;
        throw Refusal.bad("%s must be a JSON string", what);
    }

    static boolean bool(Object value, String what) {
        if (value instanceof Boolean bool) return bool;
        throw Refusal.bad("%s must be true or false", what);
    }

    /** An integer of that many bits; unsigned 64-bit ones come back in the bits of the long. */
    static long integer(Object value, int bits, boolean signed, String what) {
        if (!(value instanceof Num num) || !num.integer()) throw Refusal.bad("%s must be an integer", what);
        int length = num.end() - num.start();
        if (length <= 18) {
            long number = Long.parseLong(num.source(), num.start(), num.end(), 10);
            boolean fits = signed
                    ? bits == 64 || number >> (bits - 1) == number >> 63
                    : number >= 0 && (bits == 64 || number >>> bits == 0);
            if (fits) return number;
        } else if (length <= 20) {
            BigInteger number = new BigInteger(num.text());
            boolean fits = signed ? number.bitLength() < bits : number.signum() >= 0 && number.bitLength() <= bits;
            if (fits) return number.longValue();
        }
        throw Refusal.bad("%s is out of the range of %s%d", what, signed ? "INT" : "UINT", bits);
    }

    // ---- reader -------------------------------------------------------------------------------

    private Refusal fault(String message) {
        return Refusal.bad("malformed JSON at character %d: %s", at, message);
    }

    private int peek() {
        return at < text.length() ? text.charAt(at) : -1;
    }

    private void blanks() {
        for (int c = peek(); c == ' ' || c == '\n' || c == '\r' || c == '\t'; c = peek()) at++;
    }

    private boolean skip(char c) {
        blanks();
        if (peek() != c) return false;
        at++;
        return true;
    }

    private Object value() {
        blanks();
        switch (peek()) {
            case '{': return object();
            case '[': return array();
            case '"': return string();
            case 't': return word("true", Boolean.TRUE);
            case 'f': return word("false", Boolean.FALSE);
            case 'n': return word("null", null);
            default: return number();
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) throw fault("a value was expected");
        at += word.length();
        return value;
    }

    private Map<String, Object> object() {
        enter();
        Map<String, Object> map = new LinkedHashMap<>();
        if (!skip('}')) {
            do {
                blanks();
                if (peek() != '"') throw fault("a name was expected");
                String name = string();
                if (!skip(':')) throw fault("':' was expected");
                if (map.containsKey(name)) throw fault("the name '" + name + "' occurs twice");
                map.put(name, value());
            } while (skip(','));
            if (!skip('}')) throw fault("',' or '}' was expected");
        }
        depth--;
        return map;
    }

    private List<Object> array() {
        enter();
        List<Object> list = new ArrayList<>();
        if (!skip(']')) {
            do list.add(value()); while (skip(','));
            if (!skip(']')) throw fault("',' or ']' was expected");
        }
        depth--;
        return list;
    }

    private void enter() {
        at++;
        if (++depth > MAX_DEPTH) throw fault("nested deeper than " + MAX_DEPTH);
    }

    private Num number() {
        int start = at;
        boolean integer = true;
        if (peek() == '-') at++;
        if (peek() == '0') at++;
        else digits();
        if (peek() == '.') {
            integer = false;
            at++;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            integer = false;
            at++;
            if (peek() == '+' || peek() == '-') at++;
            digits();
        }
        return new Num(text, start, at, integer);
    }

    private void digits() {
        int start = at;
        while (peek() >= '0' && peek() <= '9') at++;
        if (at == start) throw fault("a value was expected");
    }

    private String string() {
        int start = ++at;
        while (peek() >= ' ' && peek() != '"' && peek() != '\\') at++;
        if (peek() == '"') return text.substring(start, at++);
        StringBuilder out = new StringBuilder(text.substring(start, at));
        while (true) {
            int c = peek();
            if (c < ' ') throw fault("a string is not closed or contains a control character");
            at++;
            if (c == '"') return out.toString();
            out.append(c == '\\' ? escape() : (char) c);
        }
    }

    private char escape() {
        int c = peek();
        at++;
        switch (c) {
            case '"': case '\\': case '/': return (char) c;
            case 'b': return '\b';
            case 'f': return '\f';
            case 'n': return '\n';
            case 'r': return '\r';
            case 't': return '\t';
            case 'u':
                int code = 0;
                for (int i = 0; i < 4; i++, at++) {
                    int c4 = peek();
                    int digit = c4 >= 0 && c4 < 128 ? Character.digit(c4, 16) : -1;
                    if (digit < 0) throw fault("four hexadecimal digits were expected");
                    code = code << 4 | digit;
                }
                return (char) code;
            default: throw fault("unknown escape");
        }
    }

    // ---- writer -------------------------------------------------------------------------------

    /** An object of these names and values in this order, which Map.of does not keep. */
    static Map<String, Object> members(Object... namesAndValues) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) map.put((String) namesAndValues[i], namesAndValues[i + 1]);
        return map;
    }

    static byte[] bytes(Object value) {
        StringBuilder out = new StringBuilder();
        write(out, value);
        return out.toString().getBytes(StandardCharsets.UTF_8);
    }

    private static void write(StringBuilder out, Object value) {
        if (value instanceof Fragment fragment) {
            fragment.appendTo(out);
        } else if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                quote(out.append(separator), (String) entry.getKey());
                write(out.append(':'), entry.getValue());
                separator = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> list) {
            String separator = "";
            out.append('[');
            for (Object element : list) {
                write(out.append(separator), element);
                separator = ",";
            }
            out.append(']');
        } else if (value instanceof String string) {
            quote(out, string);
        } else {
            out.append(value);
        }
    }

    static void quote(StringBuilder out, String string) {
        out.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (Character.isHighSurrogate(c) && i + 1 < string.length()
                    && Character.isLowSurrogate(string.charAt(i + 1))) {
                out.append(c).append(string.charAt(++i));
            } else if (c < ' ' || Character.isSurrogate(c)) {
                // an unpaired surrogate has no UTF-8 form, yet an id must come back as it was given
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }
}
