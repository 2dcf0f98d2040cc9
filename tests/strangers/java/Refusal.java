/** A request that is answered with an HTTP error status and the error object of the protocol. */
@SuppressWarnings("serial")
final class Refusal extends RuntimeException {
    final int status;

    Refusal(int status, String message) {
        super(message, null, false, false);
        this.status = status;
    }

    /** "A failed inference request must be indicated by an HTTP error status (typically 400)" (OIP). */
    static Refusal bad(String format, Object... arguments) {
        return new Refusal(400, String.format(format, arguments));
    }

    static Refusal notFound(String format, Object... arguments) {
        return new Refusal(404, String.format(format, arguments));
    }
}
