/** The client has no way to make a request. */
final class UnsupportedException extends Exception {
  UnsupportedException(String message) {
    super(message);
  }
}
