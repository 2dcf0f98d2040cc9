<?php
declare(strict_types=1);

/**
 * A reader for the part of TOML that a roles file uses: tables, basic strings, integers, floats, booleans,
 * arrays (over several lines too) and inline tables.
 */
final class Toml
{
    private int $pos = 0;

    private function __construct(private readonly string $text)
    {
    }

    /** @return array<string, mixed> */
    public static function parse(string $text): array
    {
        return (new self($text))->document();
    }

    private function document(): array
    {
        $root = [];
        $table = &$root;
        for ($this->skip(); $this->pos < strlen($this->text); $this->skip()) {
            if ($this->accept('[')) {
                $name = $this->key();
                $this->expect(']');
                $root[$name] ??= [];
                $table = &$root[$name];
            } else {
                $name = $this->key();
                $this->expect('=');
                $table[$name] = $this->value();
            }
        }
        return $root;
    }

    private function value(): mixed
    {
        $this->skip();
        if ($this->accept('[')) {
            $list = [];
            while (!$this->accept(']')) {
                $list[] = $this->value();
                if (!$this->accept(',')) {
                    $this->expect(']');
                    break;
                }
            }
            return $list;
        }
        if ($this->accept('{')) {
            $table = [];
            while (!$this->accept('}')) {
                $name = $this->key();
                $this->expect('=');
                $table[$name] = $this->value();
                if (!$this->accept(',')) {
                    $this->expect('}');
                    break;
                }
            }
            return $table;
        }
        if ($this->text[$this->pos] === '"') {
            return $this->quoted();
        }
        $word = $this->match('/[-+\w.]+/A');
        return match (true) {
            $word === 'true' => true,
            $word === 'false' => false,
            preg_match('/^[-+]?\d+$/', $word) === 1 => (int) $word,
            is_numeric($word) => (float) $word,
            default => $this->fail("no value: $word"),
        };
    }

    private function key(): string
    {
        $this->skip();
        return $this->text[$this->pos] === '"' ? $this->quoted() : $this->match('/[\w-]+/A');
    }

    private function quoted(): string
    {
        return json_decode($this->match('/"(?:[^"\\\\\n]|\\\\.)*"/A'), false, 2, JSON_THROW_ON_ERROR);
    }

    private function skip(): void
    {
        preg_match('/(?:\s+|#[^\n]*)*/A', $this->text, $m, 0, $this->pos);
        $this->pos += strlen($m[0]);
    }

    private function accept(string $char): bool
    {
        $this->skip();
        if (($this->text[$this->pos] ?? '') !== $char) {
            return false;
        }
        $this->pos++;
        return true;
    }

    private function expect(string $char): void
    {
        $this->accept($char) || $this->fail("'$char' expected");
    }

    private function match(string $pattern): string
    {
        if (preg_match($pattern, $this->text, $m, 0, $this->pos) !== 1) {
            $this->fail('unexpected text');
        }
        $this->pos += strlen($m[0]);
        return $m[0];
    }

    private function fail(string $why): never
    {
        $line = 1 + substr_count($this->text, "\n", 0, $this->pos);
        throw new RuntimeException("TOML, line $line: $why");
    }
}
