/** An answer, or a request, that is none of the protocol; with the HTTP status if the server answered an error. */
class ProtocolException extends RuntimeException {
    private final int status;

    ProtocolException(String message) {
        this(message, 0);
    }

    ProtocolException(String message, int status) {
        super(message);
        this.status = status;
    }

    int status() {
        return status;
    }
}
