import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A small JSON reader and writer. Numbers keep their spelling, so that no precision is lost. */
final class Json {
    /** A number as it is spelled. */
    record Num(String text) {
        private static final BigDecimal LIMIT = BigDecimal.TEN.pow(30);

        /** The value of an integer in any spelling, such as 10, 10.0 or 1e1. */
        BigInteger integer() {
            if (text.length() > 1000) {
                throw new ProtocolException("a number of " + text.length() + " digits");
            }
            BigDecimal value = decimal();
            if (value.signum() == 0) {
                return BigInteger.ZERO;
            }
            if (value.precision() - (long) value.scale() > 30 || value.precision() - (long) value.scale() < 1) {
                throw new ProtocolException(text + " is out of range");
            }
            try {
                return value.toBigIntegerExact();
            } catch (ArithmeticException error) {
                throw new ProtocolException(text + " is no integer");
            }
        }

        private BigDecimal decimal() {
            try {
                return new BigDecimal(text);
            } catch (NumberFormatException error) {
                throw new ProtocolException(text + " is out of range");
            }
        }
    }

    private static final int MAX_DEPTH = 200;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Reads a JSON document: Map, List, String, Num, Boolean or null. */
    static Object parse(String text) {
        Json reader = new Json(text);
        Object value = reader.value(0);
        reader.space();
        if (reader.at < text.length()) {
            throw reader.wrong();
        }
        return value;
    }

    private ProtocolException wrong() {
        return new ProtocolException("no JSON at character " + at);
    }

    private void space() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char peek() {
        space();
        if (at >= text.length()) {
            throw wrong();
        }
        return text.charAt(at);
    }

    private void expect(char one) {
        if (peek() != one) {
            throw wrong();
        }
        at++;
    }

    private Object value(int depth) {
        if (depth > MAX_DEPTH) {
            throw new ProtocolException("JSON is nested too deep");
        }
        switch (peek()) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong();
        }
        at += word.length();
        return value;
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> members = new LinkedHashMap<>();
        expect('{');
        if (peek() == '}') {
            at++;
            return members;
        }
        while (true) {
            if (peek() != '"') {
                throw wrong();
            }
            String name = string();
            expect(':');
            members.put(name, value(depth + 1));
            if (peek() == '}') {
                at++;
                return members;
            }
            expect(',');
        }
    }

    private List<Object> array(int depth) {
        List<Object> items = new ArrayList<>();
        expect('[');
        if (peek() == ']') {
            at++;
            return items;
        }
        while (true) {
            items.add(value(depth + 1));
            if (peek() == ']') {
                at++;
                return items;
            }
            expect(',');
        }
    }

    private String string() {
        StringBuilder out = new StringBuilder();
        for (at++; ; at++) {
            if (at >= text.length()) {
                throw wrong();
            }
            char one = text.charAt(at);
            if (one == '"') {
                at++;
                return out.toString();
            }
            if (one < 0x20) {
                throw wrong();
            }
            if (one != '\\') {
                out.append(one);
                continue;
            }
            if (++at >= text.length()) {
                throw wrong();
            }
            switch (text.charAt(at)) {
                case '"' -> out.append('"');
                case '\\' -> out.append('\\');
                case '/' -> out.append('/');
                case 'b' -> out.append('\b');
                case 'f' -> out.append('\f');
                case 'n' -> out.append('\n');
                case 'r' -> out.append('\r');
                case 't' -> out.append('\t');
                case 'u' -> {
                    out.append(unit());
                    at += 4;
                }
                default -> throw wrong();
            }
        }
    }

    private char unit() {
        int value = 0;
        for (int i = at + 1; i <= at + 4; i++) {
            char one = i < text.length() ? text.charAt(i) : ' ';
            int digit = one < 128 ? Character.digit(one, 16) : -1;
            if (digit < 0) {
                throw wrong();
            }
            value = value << 4 | digit;
        }
        return (char) value;
    }

    private boolean digits() {
        int start = at;
        while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
            at++;
        }
        return at > start;
    }

    private boolean next(String any) {
        if (at < text.length() && any.indexOf(text.charAt(at)) >= 0) {
            at++;
            return true;
        }
        return false;
    }

    private Num number() {
        int start = at;
        next("-");
        if (!next("0") && !digits()) {
            throw wrong();
        }
        if (next(".") && !digits()) {
            throw wrong();
        }
        if (next("eE")) {
            next("+-");
            if (!digits()) {
                throw wrong();
            }
        }
        return new Num(text.substring(start, at));
    }

    /** Writes a value; numbers by their toString. */
    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(out, value);
        return out.toString();
    }

    private static void write(StringBuilder out, Object value) {
        if (value instanceof Map<?, ?> map) {
            out.append('{');
            String comma = "";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(comma);
                quote(out, (String) entry.getKey());
                out.append(':');
                write(out, entry.getValue());
                comma = ",";
            }
            out.append('}');
        } else if (value instanceof Iterable<?> items) {
            out.append('[');
            String comma = "";
            for (Object item : items) {
                out.append(comma);
                write(out, item);
                comma = ",";
            }
            out.append(']');
        } else if (value instanceof String string) {
            quote(out, string);
        } else if (value instanceof Num number) {
            out.append(number.text());
        } else {
            out.append(value);
        }
    }

    private static void quote(StringBuilder out, String string) {
        out.append('"');
        for (int i = 0; i < string.length(); i++) {
            char one = string.charAt(i);
            if (one == '"' || one == '\\') {
                out.append('\\').append(one);
            } else if (one < 0x20) {
                String digits = Integer.toHexString(one);
                out.append("\\u").append("0".repeat(4 - digits.length())).append(digits);
            } else {
                out.append(one);
            }
        }
        out.append('"');
    }
}
