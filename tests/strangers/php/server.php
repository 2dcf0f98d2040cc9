<?php
declare(strict_types=1);

/**
 * An Open Inference Protocol server, HTTP/1.1 only: one process, one loop over all connections.
 *
 *     php server.php --port PORT ROLES.toml
 */

require_once __DIR__ . '/http.php';
require_once __DIR__ . '/protocol.php';

/** One client: its parser, and what is still to be written to it. */
final class Connection
{
    public const MAX_BODY = 1 << 28;
    private const READ = 1 << 18;

    private readonly RequestParser $parser;
    private string $output = '';
    private int $written = 0;
    private bool $closing = false;
    private bool $drained = false;
    public int $lastActive;

    public function __construct(public readonly Socket $socket, private readonly Protocol $protocol)
    {
        $this->parser = new RequestParser(self::MAX_BODY);
        $this->lastActive = time();
        socket_set_nonblock($socket);
        socket_set_option($socket, SOL_TCP, TCP_NODELAY, 1);
    }

    public function wantsWrite(): bool
    {
        return $this->output !== '';
    }

    /** Nothing is read while an answer waits to be written, so that answers cannot pile up. */
    public function wantsRead(): bool
    {
        return !$this->wantsWrite();
    }

    public function expired(int $now): bool
    {
        return $now - $this->lastActive > ($this->drained ? 2 : 120);
    }

    /** @return bool false when the connection is over */
    public function onReadable(): bool
    {
        $count = @socket_recv($this->socket, $bytes, self::READ, 0);
        if ($count === false) {
            return in_array(socket_last_error($this->socket), [SOCKET_EAGAIN, SOCKET_EINTR], true);
        }
        if ($count === 0) {
            return false;
        }
        if ($this->closing) {
            return true; // what comes after the last answer is thrown away
        }
        $this->lastActive = time();
        $this->parser->feed($bytes);
        return $this->serve();
    }

    /** @return bool false when the connection is over */
    public function onWritable(): bool
    {
        $count = @socket_write($this->socket, $this->written === 0 ? $this->output
            : substr($this->output, $this->written, self::READ));
        if ($count === false) {
            return in_array(socket_last_error($this->socket), [SOCKET_EAGAIN, SOCKET_EINTR], true);
        }
        $this->lastActive = time();
        $this->written += $count;
        if ($this->written < strlen($this->output)) {
            return true;
        }
        $this->output = '';
        $this->written = 0;
        if ($this->closing) {
            if (!$this->drained) {
                $this->drained = true;
                socket_shutdown($this->socket, 1);
            }
            return true;
        }
        return $this->serve(); // a request that came behind the one just answered
    }

    /** Answers the next request that has arrived as a whole. */
    private function serve(): bool
    {
        if ($this->output !== '') {
            return true;
        }
        try {
            $request = $this->parser->next();
        } catch (HttpError $error) {
            $this->closing = true;
            $this->output = Response::error($error->getMessage(), $error->status)->serialize(true, false, '1.1');
            return true;
        }
        if ($request === null) {
            if ($this->parser->takeContinue()) {
                $this->output = "HTTP/1.1 100 Continue\r\n\r\n";
            }
            return true;
        }
        $response = $this->protocol->answer($request);
        $this->closing = !$request->keepAlive();
        $this->output = $response->serialize($request->method !== 'HEAD', !$this->closing, $request->version);
        return true;
    }
}

final class Server
{
    /** @var array<int, Connection> */
    private array $connections = [];
    private int $nextId = 0;

    public function __construct(private readonly Socket $listener, private readonly Protocol $protocol)
    {
    }

    public function run(): never
    {
        while (true) {
            $read = [-1 => $this->listener];
            $write = [];
            foreach ($this->connections as $id => $connection) {
                if ($connection->wantsWrite()) {
                    $write[$id] = $connection->socket;
                }
                if ($connection->wantsRead()) {
                    $read[$id] = $connection->socket;
                }
            }
            $except = null;
            if (@socket_select($read, $write, $except, 1) === false) {
                continue;
            }
            if (isset($read[-1])) {
                $this->accept();
                unset($read[-1]);
            }
            foreach ($read as $id => $_) {
                $this->connections[$id]->onReadable() || $this->close($id);
            }
            foreach ($write as $id => $_) {
                $this->connections[$id]->onWritable() || $this->close($id);
            }
            $this->closeExpired();
        }
    }

    private function accept(): void
    {
        $socket = @socket_accept($this->listener);
        if ($socket !== false) {
            $this->connections[$this->nextId++] = new Connection($socket, $this->protocol);
        }
    }

    private function closeExpired(): void
    {
        $now = time();
        foreach ($this->connections as $id => $connection) {
            if ($connection->expired($now)) {
                $this->close($id);
            }
        }
    }

    private function close(int $id): void
    {
        socket_close($this->connections[$id]->socket);
        unset($this->connections[$id]);
    }
}

function main(array $argv): void
{
    $port = filter_var($argv[2] ?? '', FILTER_VALIDATE_INT, ['options' => ['min_range' => 0, 'max_range' => 65535]]);
    if (count($argv) !== 4 || $argv[1] !== '--port' || $port === false) {
        fwrite(STDERR, "usage: php server.php --port PORT ROLES.toml\n");
        exit(2);
    }
    ini_set('memory_limit', '4G');
    ini_set('serialize_precision', '-1');
    $models = Model::loadAll($argv[3]);
    $listener = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
    socket_set_option($listener, SOL_SOCKET, SO_REUSEADDR, 1);
    if (!socket_bind($listener, '127.0.0.1', $port) || !socket_listen($listener, 128)) {
        exit(1);
    }
    socket_set_nonblock($listener);
    socket_getsockname($listener, $address, $port);
    echo "http://$address:$port\n";
    (new Server($listener, new Protocol($models)))->run();
}

main($argv);
