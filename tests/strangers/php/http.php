<?php
declare(strict_types=1);

require_once __DIR__ . '/tensor.php';

/** A request whose framing is broken: it is answered, and the connection is closed. */
final class HttpError extends RuntimeException
{
    public function __construct(string $message, public readonly int $status = 400)
    {
        parent::__construct($message);
    }
}

final class Request
{
    /** Bytes that are inflated at once, so that a body cannot take all memory before its size is known. */
    private const PIECE = 1 << 16;

    public string $body = '';

    /** @param array<string, string> $headers by name in lower case; repeated ones joined by ", " */
    public function __construct(
        public readonly string $method,
        public readonly string $target,
        public readonly string $version,
        public readonly array $headers,
    ) {
    }

    public function header(string $name): ?string
    {
        return $this->headers[strtolower($name)] ?? null;
    }

    /** @return list<string> the decoded segments of the path */
    public function segments(): array
    {
        $target = preg_replace('~^https?://[^/?]*~i', '', $this->target);
        $path = strtok($target . '?', '?');
        return array_map(rawurldecode(...), explode('/', rtrim(substr((string) $path, 1), '/')));
    }

    public function keepAlive(): bool
    {
        $options = array_map(trim(...), explode(',', strtolower($this->header('Connection') ?? '')));
        if ($this->version === '1.0') {
            return in_array('keep-alive', $options, true);
        }
        return !in_array('close', $options, true);
    }

    /** The body without its content coding. */
    public function content(int $limit): string
    {
        $body = $this->body;
        $codings = explode(',', strtolower($this->header('Content-Encoding') ?? 'identity'));
        foreach (array_reverse($codings) as $coding) {
            $plain = match (trim($coding)) {
                'identity', '' => $body,
                'gzip', 'x-gzip' => $this->gunzip($body, $limit),
                'deflate' => $this->inflate($body, $limit),
                default => throw new ApiError('content coding ' . trim($coding) . ' is not supported', 415),
            };
            if ($plain === false) {
                throw new ApiError('the body does not decode as ' . trim($coding) . ', or is too large');
            }
            $body = $plain;
        }
        return $body;
    }

    /** The members of a gzip body, joined; false if one is damaged or cut short, or if they are too large. */
    private function gunzip(string $body, int $limit): string|false
    {
        $plain = '';
        $start = 0;
        do {
            $member = inflate_init(ZLIB_ENCODING_GZIP);
            for ($pos = $start; inflate_get_status($member) !== ZLIB_STREAM_END; $pos += self::PIECE) {
                $piece = substr($body, $pos, self::PIECE);
                $inflated = $piece === '' ? false : @inflate_add($member, $piece);
                if ($inflated === false || strlen($inflated) > $limit - strlen($plain)) {
                    return false;
                }
                $plain .= $inflated;
            }
            $start += inflate_get_read_len($member);
        } while ($start < strlen($body));
        return $plain;
    }

    /** "deflate" is the zlib format; some clients send the bare stream. */
    private function inflate(string $body, int $limit): string|false
    {
        $plain = @gzuncompress($body, $limit);
        return $plain !== false ? $plain : @gzinflate($body, $limit);
    }
}

final class Response
{
    private const REASONS = [
        200 => 'OK', 400 => 'Bad Request', 404 => 'Not Found', 405 => 'Method Not Allowed',
        413 => 'Content Too Large', 415 => 'Unsupported Media Type', 431 => 'Request Header Fields Too Large',
        500 => 'Internal Server Error', 501 => 'Not Implemented', 503 => 'Service Unavailable',
        505 => 'HTTP Version Not Supported',
    ];

    /** @param array<string, string> $headers */
    public function __construct(
        public readonly int $status,
        public readonly string $body,
        private readonly array $headers = [],
    ) {
    }

    public static function json(mixed $value, int $status = 200, array $headers = []): self
    {
        $body = json_encode($value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_INVALID_UTF8_SUBSTITUTE);
        return new self($status, $body, ['Content-Type' => 'application/json'] + $headers);
    }

    public static function error(string $message, int $status, array $headers = []): self
    {
        return self::json(['error' => $message], $status, $headers);
    }

    public function serialize(bool $withBody, bool $keepAlive, string $version): string
    {
        $head = sprintf("HTTP/1.1 %d %s\r\n", $this->status, self::REASONS[$this->status] ?? 'Unknown');
        foreach ($this->headers as $name => $value) {
            $head .= "$name: $value\r\n";
        }
        $head .= 'Content-Length: ' . strlen($this->body) . "\r\n";
        if (!$keepAlive) {
            $head .= "Connection: close\r\n";
        } elseif ($version === '1.0') {
            $head .= "Connection: keep-alive\r\n";
        }
        return "$head\r\n" . ($withBody ? $this->body : '');
    }
}

/** Cuts the bytes of one connection into requests. */
final class RequestParser
{
    private const MAX_HEAD = 65536;
    private const HEAD = 0;
    private const LENGTH = 1;
    private const CHUNK_SIZE = 2;
    private const CHUNK_DATA = 3;
    private const CHUNK_END = 4;
    private const TRAILER = 5;
    private const DONE = 6;

    private string $buffer = '';
    private int $pos = 0;
    private int $state = self::HEAD;
    private int $remaining = 0;
    private int $trailerSize = 0;
    private ?Request $request = null;
    private bool $continue = false;

    public function __construct(private readonly int $maxBody)
    {
    }

    public function feed(string $bytes): void
    {
        $this->buffer = $this->pos === 0 ? $this->buffer . $bytes : substr($this->buffer, $this->pos) . $bytes;
        $this->pos = 0;
    }

    /** Whether the client waits for "100 Continue"; true once for a request. */
    public function takeContinue(): bool
    {
        $taken = $this->continue && $this->request !== null && $this->pos === strlen($this->buffer);
        $this->continue = $this->continue && !$taken;
        return $taken;
    }

    public function idle(): bool
    {
        return $this->state === self::HEAD && $this->pos === strlen($this->buffer);
    }

    /** The next whole request, or null if more bytes are needed. */
    public function next(): ?Request
    {
        while ($this->state !== self::DONE) {
            $moved = match ($this->state) {
                self::HEAD => $this->readHead(),
                self::LENGTH, self::CHUNK_DATA => $this->readBody(),
                self::CHUNK_SIZE => $this->readChunkSize(),
                self::CHUNK_END => $this->readChunkEnd(),
                self::TRAILER => $this->readTrailer(),
            };
            if (!$moved) {
                return null;
            }
        }
        $request = $this->request;
        $this->request = null;
        $this->continue = false;
        $this->state = self::HEAD;
        return $request;
    }

    private function readHead(): bool
    {
        $start = $this->pos + strspn($this->buffer, "\r\n", $this->pos);
        $end = strpos($this->buffer, "\r\n\r\n", $start);
        if (($end === false ? strlen($this->buffer) : $end) - $start > self::MAX_HEAD) {
            throw new HttpError('the head of the request is too large', 431);
        }
        if ($end === false) {
            return false;
        }
        $lines = explode("\r\n", substr($this->buffer, $start, $end - $start));
        $this->pos = $end + 4;
        $first = array_shift($lines);
        if (preg_match('~^([!#$%&\'*+.^_`|\~\w-]+) (\S+) HTTP/(\d)\.(\d)$~', $first, $m) !== 1) {
            throw new HttpError('malformed request line');
        }
        if ($m[3] !== '1') {
            throw new HttpError('only HTTP/1.1 is spoken here', 505);
        }
        $headers = $this->headers($lines);
        $version = $m[4] === '0' ? '1.0' : '1.1';
        if ($version === '1.1' && !isset($headers['host'])) {
            throw new HttpError('a Host header is required');
        }
        $this->request = new Request($m[1], $m[2], $version, $headers);
        $this->startBody($headers);
        $this->continue = $version === '1.1' && strtolower($headers['expect'] ?? '') === '100-continue'
            && $this->state !== self::DONE;
        return true;
    }

    private function headers(array $lines): array
    {
        $headers = [];
        foreach ($lines as $line) {
            if (preg_match('~^([!#$%&\'*+.^_`|\~\w-]+):[ \t]*(.*?)[ \t]*$~s', $line, $m) !== 1) {
                throw new HttpError('malformed header line');
            }
            $name = strtolower($m[1]);
            $headers[$name] = isset($headers[$name]) ? "$headers[$name], $m[2]" : $m[2];
        }
        return $headers;
    }

    private function startBody(array $headers): void
    {
        if (isset($headers['transfer-encoding'])) {
            if (strtolower($headers['transfer-encoding']) !== 'chunked') {
                throw new HttpError('only the transfer coding "chunked" is supported', 501);
            }
            if (isset($headers['content-length'])) {
                throw new HttpError('Transfer-Encoding and Content-Length exclude each other');
            }
            $this->state = self::CHUNK_SIZE;
            $this->trailerSize = 0;
            return;
        }
        $lengths = array_unique(array_map(trim(...), explode(',', $headers['content-length'] ?? '0')));
        if (count($lengths) !== 1 || preg_match('/^\d{1,18}$/', $lengths[0]) !== 1) {
            throw new HttpError('malformed Content-Length');
        }
        $this->remaining = (int) $lengths[0];
        if ($this->remaining > $this->maxBody) {
            throw new HttpError('the body is too large', 413);
        }
        $this->state = $this->remaining > 0 ? self::LENGTH : self::DONE;
    }

    /** Takes what has arrived of the body, or of the chunk. */
    private function readBody(): bool
    {
        $take = min($this->remaining, strlen($this->buffer) - $this->pos);
        $this->request->body .= substr($this->buffer, $this->pos, $take);
        $this->pos += $take;
        $this->remaining -= $take;
        if ($this->remaining > 0) {
            return false;
        }
        $this->state = $this->state === self::LENGTH ? self::DONE : self::CHUNK_END;
        return true;
    }

    private function readChunkSize(): bool
    {
        $line = $this->readLine();
        if ($line === null) {
            return false;
        }
        if (preg_match('/^([0-9a-fA-F]{1,15})[ \t]*(?:;.*)?$/s', $line, $m) !== 1) {
            throw new HttpError('malformed chunk size');
        }
        $this->remaining = (int) hexdec($m[1]);
        if ($this->remaining > $this->maxBody - strlen($this->request->body)) {
            throw new HttpError('the body is too large', 413);
        }
        $this->state = $this->remaining > 0 ? self::CHUNK_DATA : self::TRAILER;
        return true;
    }

    private function readChunkEnd(): bool
    {
        if (strlen($this->buffer) - $this->pos < 2) {
            return false;
        }
        if (substr($this->buffer, $this->pos, 2) !== "\r\n") {
            throw new HttpError('a chunk does not end where its size says');
        }
        $this->pos += 2;
        $this->state = self::CHUNK_SIZE;
        return true;
    }

    private function readTrailer(): bool
    {
        while (($line = $this->readLine()) !== null) {
            if ($line === '') {
                $this->state = self::DONE;
                return true;
            }
            $this->trailerSize += strlen($line);
            if ($this->trailerSize > self::MAX_HEAD) {
                throw new HttpError('the trailer is too large', 431);
            }
        }
        return false;
    }

    private function readLine(): ?string
    {
        $end = strpos($this->buffer, "\r\n", $this->pos);
        if (($end === false ? strlen($this->buffer) : $end) - $this->pos > self::MAX_HEAD) {
            throw new HttpError('a line is too long');
        }
        if ($end === false) {
            return null;
        }
        $line = substr($this->buffer, $this->pos, $end - $this->pos);
        $this->pos = $end + 2;
        return $line;
    }
}
