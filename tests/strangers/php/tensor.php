<?php
declare(strict_types=1);

/** An error that the client gets as {"error": ...}. */
final class ApiError extends RuntimeException
{
    public function __construct(string $message, public readonly int $status = 400)
    {
        parent::__construct($message);
    }
}

/** A tensor; its elements are kept in the binary form of the binary tensor data extension. */
final class Tensor
{
    /** @param list<int> $shape */
    public function __construct(
        public readonly string $name,
        public readonly string $datatype,
        public readonly array $shape,
        public readonly string $bytes,
    ) {
    }

    /** @return list<int|float|bool|string> */
    public function values(): array
    {
        return Datatype::unpack($this->datatype, $this->bytes);
    }

    public static function of(string $name, string $datatype, array $shape, array $values): self
    {
        return new self($name, $datatype, $shape, Datatype::pack($datatype, $values));
    }
}

/** IEEE 754 binary16. */
final class Half
{
    /** The nearest half of a number, ties to even, as 16 bits. */
    public static function encode(float $x): int
    {
        $bits = unpack('P', pack('e', $x))[1];
        $sign = $bits < 0 ? 0x8000 : 0;
        if (is_nan($x)) {
            return $sign | 0x7e00;
        }
        $size = abs($x);
        if ($size >= 65520.0) {
            return $sign | 0x7c00;
        }
        if ($size < 2 ** -14) {
            $scaled = $size * 2 ** 24;
            $whole = (int) floor($scaled);
            $rest = $scaled - $whole;
            $up = $rest > 0.5 || ($rest === 0.5 && ($whole & 1) === 1);
            return $sign | ($whole + ($up ? 1 : 0));
        }
        $exponent = (($bits >> 52) & 0x7ff) - 1023;
        $fraction = $bits & 0xfffffffffffff;
        $half = (($exponent + 15) << 10) | ($fraction >> 42);
        $rest = $fraction & ((1 << 42) - 1);
        if ($rest > 1 << 41 || ($rest === 1 << 41 && ($half & 1) === 1)) {
            $half++;
        }
        return $sign | $half;
    }

    public static function decode(int $half): float
    {
        $exponent = ($half >> 10) & 0x1f;
        $fraction = $half & 0x3ff;
        $size = match ($exponent) {
            0 => $fraction * 2 ** -24,
            31 => $fraction === 0 ? INF : NAN,
            default => (1024 + $fraction) * 2.0 ** ($exponent - 25),
        };
        return ($half & 0x8000) !== 0 ? -(float) $size : (float) $size;
    }
}

final class Datatype
{
    /** Bytes of an element; BYTES varies. */
    private const SIZES = [
        'BOOL' => 1, 'UINT8' => 1, 'UINT16' => 2, 'UINT32' => 4, 'UINT64' => 8,
        'INT8' => 1, 'INT16' => 2, 'INT32' => 4, 'INT64' => 8,
        'FP16' => 2, 'FP32' => 4, 'FP64' => 8, 'BYTES' => null,
    ];

    private const PACK = [
        'BOOL' => 'C', 'UINT8' => 'C', 'UINT16' => 'v', 'UINT32' => 'V', 'UINT64' => 'P',
        'INT8' => 'c', 'INT16' => 'v', 'INT32' => 'V', 'INT64' => 'P',
        'FP16' => 'v', 'FP32' => 'g', 'FP64' => 'e',
    ];

    /** How many elements go to one call of pack(). */
    private const BLOCK = 4096;

    public static function known(string $datatype): bool
    {
        return array_key_exists($datatype, self::SIZES);
    }

    public static function size(string $datatype): ?int
    {
        return self::SIZES[$datatype];
    }

    public static function isFloat(string $datatype): bool
    {
        return str_starts_with($datatype, 'FP');
    }

    /** @param list<int|float|bool|string> $values */
    public static function pack(string $datatype, array $values): string
    {
        if ($datatype === 'BYTES') {
            $bytes = '';
            foreach ($values as $value) {
                $bytes .= pack('V', strlen($value)) . $value;
            }
            return $bytes;
        }
        if ($datatype === 'FP16') {
            $values = array_map(static fn ($x) => Half::encode((float) $x), $values);
        }
        $code = self::PACK[$datatype] . '*';
        $bytes = '';
        foreach (array_chunk($values, self::BLOCK) as $block) {
            $bytes .= pack($code, ...$block);
        }
        return $bytes;
    }

    /** @return list<int|float|bool|string> UINT64 as an int of the same bits */
    public static function unpack(string $datatype, string $bytes): array
    {
        if ($datatype === 'BYTES') {
            return self::elements($bytes);
        }
        if ($bytes === '') {
            return [];
        }
        $values = array_values(unpack(self::PACK[$datatype] . '*', $bytes));
        return match ($datatype) {
            'BOOL' => array_map(static fn (int $x) => $x !== 0, $values),
            'INT16' => array_map(static fn (int $x) => ($x ^ 0x8000) - 0x8000, $values),
            'INT32' => array_map(static fn (int $x) => ($x ^ 0x80000000) - 0x80000000, $values),
            'FP16' => array_map(Half::decode(...), $values),
            default => $values,
        };
    }

    /** The elements of a BYTES tensor in binary form. */
    public static function elements(string $bytes): array
    {
        $values = [];
        $end = strlen($bytes);
        for ($pos = 0; $pos < $end; $pos += $length) {
            if ($end - $pos < 4) {
                throw new ApiError('BYTES data ends inside the length of an element');
            }
            $length = unpack('V', $bytes, $pos)[1];
            $pos += 4;
            if ($length > $end - $pos) {
                throw new ApiError('BYTES data ends inside an element');
            }
            $values[] = substr($bytes, $pos, $length);
        }
        return $values;
    }

    /** Refuses binary data that is no tensor of this datatype with so many elements. */
    public static function checkBinary(string $name, string $datatype, string $bytes, int $count): void
    {
        if ($datatype === 'BYTES') {
            $found = count(self::elements($bytes));
            if ($found !== $count) {
                throw new ApiError("tensor '$name': $found elements of binary data, the shape needs $count");
            }
            return;
        }
        $need = $count * self::SIZES[$datatype];
        if (strlen($bytes) !== $need) {
            throw new ApiError("tensor '$name': " . strlen($bytes) . " bytes of binary data, the shape needs $need");
        }
        if ($datatype === 'BOOL' && strspn($bytes, "\x00\x01") !== $count) {
            throw new ApiError("tensor '$name': a BOOL is a byte of value 0 or 1");
        }
    }

    /** An element as JSON gave it, as the value that pack() takes. */
    public static function fromJson(string $name, string $datatype, mixed $value): int|float|bool|string
    {
        switch ($datatype) {
            case 'BOOL':
                return is_bool($value) ? $value : self::refuse($name, $datatype, $value);
            case 'BYTES':
                return is_string($value) ? $value : self::refuse($name, $datatype, $value);
            case 'FP16':
            case 'FP32':
            case 'FP64':
                return self::floatFromJson($name, $datatype, $value);
            default:
                return self::intFromJson($name, $datatype, $value);
        }
    }

    private static function floatFromJson(string $name, string $datatype, mixed $value): float
    {
        if (is_string($value) && preg_match('/^-?\d{19,}$/', $value) === 1) {
            $value = (float) $value; // an integer that json_decode() left as text
        }
        if (!is_int($value) && !is_float($value)) {
            self::refuse($name, $datatype, $value);
        }
        $value = (float) $value;
        $stored = match ($datatype) {
            'FP16' => Half::decode(Half::encode($value)),
            'FP32' => unpack('g', pack('g', $value))[1],
            'FP64' => $value,
        };
        return is_finite($stored) ? $value : self::refuse($name, $datatype, $value);
    }

    private static function intFromJson(string $name, string $datatype, mixed $value): int
    {
        if (is_float($value) && floor($value) === $value && abs($value) < 2 ** 53) {
            $value = (int) $value;
        }
        if ($datatype === 'UINT64' && is_string($value) && self::isBigUint64($value)) {
            return self::uint64FromText($value);
        }
        if (!is_int($value)) {
            self::refuse($name, $datatype, $value);
        }
        $bits = 8 * self::SIZES[$datatype];
        [$low, $high] = match (true) {
            $datatype === 'INT64' => [PHP_INT_MIN, PHP_INT_MAX],
            $datatype === 'UINT64' => [0, PHP_INT_MAX],
            $datatype[0] === 'U' => [0, (1 << $bits) - 1],
            default => [-(1 << ($bits - 1)), (1 << ($bits - 1)) - 1],
        };
        return $value >= $low && $value <= $high ? $value : self::refuse($name, $datatype, $value);
    }

    /** A number from 2^63 to 2^64 - 1: json_decode() leaves those as text. */
    private static function isBigUint64(string $text): bool
    {
        return preg_match('/^\d{19,20}$/', $text) === 1
            && strcmp(str_pad($text, 20, '0', STR_PAD_LEFT), '18446744073709551615') <= 0;
    }

    private static function uint64FromText(string $text): int
    {
        $head = (int) substr($text, 0, -1); // times ten in two halves, so that no step leaves the integers
        $low = ($head & 0xffffffff) * 10 + (int) substr($text, -1);
        $high = (($head >> 32) * 10 + ($low >> 32)) & 0xffffffff;
        return ($high << 32) | ($low & 0xffffffff);
    }

    private static function refuse(string $name, string $datatype, mixed $value): never
    {
        $shown = is_scalar($value) ? var_export($value, true) : get_debug_type($value);
        throw new ApiError("tensor '$name': $shown is no $datatype");
    }

    /** The elements as the members of a flat JSON array. */
    public static function toJson(Tensor $tensor): string
    {
        $texts = match (true) {
            $tensor->datatype === 'BYTES' => self::stringsToJson($tensor),
            self::isFloat($tensor->datatype) => self::floatsToJson($tensor),
            default => array_map(static fn ($x) => self::text($tensor->datatype, $x), $tensor->values()),
        };
        return '[' . implode(',', $texts) . ']';
    }

    private static function stringsToJson(Tensor $tensor): array
    {
        return array_map(static function (string $value) use ($tensor): string {
            $text = json_encode($value, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE);
            return $text !== false ? $text
                : throw new ApiError("output '$tensor->name' is not UTF-8: ask for it as binary data");
        }, $tensor->values());
    }

    private static function floatsToJson(Tensor $tensor): array
    {
        return array_map(static function (float $value) use ($tensor): string {
            if (!is_finite($value)) {
                throw new ApiError("output '$tensor->name' has a value that JSON lacks: ask for it as binary data");
            }
            $text = self::text($tensor->datatype, $value);
            return strpbrk($text, '.e') === false ? "$text.0" : $text;
        }, $tensor->values());
    }

    /** A number as text: the shortest decimal that reads back as the same value of the datatype. */
    public static function text(string $datatype, int|float|bool|string $value): string
    {
        switch ($datatype) {
            case 'BOOL':
                return $value ? 'true' : 'false';
            case 'UINT64':
                return sprintf('%u', $value);
            case 'FP16':
            case 'FP32':
            case 'FP64':
                return self::floatText($datatype, $value);
            default:
                return (string) $value;
        }
    }

    private static function floatText(string $datatype, float $value): string
    {
        if (!is_finite($value)) {
            return is_nan($value) ? 'NaN' : ($value > 0 ? 'Infinity' : '-Infinity');
        }
        if ($value == 0) {
            return fdiv(1, $value) < 0 ? '-0' : '0';
        }
        if (floor($value) === $value && abs($value) < 1e6) {
            return (string) (int) $value;
        }
        if ($datatype === 'FP64') {
            return json_encode($value);
        }
        foreach ($datatype === 'FP16' ? [3, 4, 5] : [6, 7, 8, 9] as $digits) {
            $text = json_encode((float) sprintf('%.' . ($digits - 1) . 'e', $value));
            $back = (float) $text;
            $back = $datatype === 'FP16' ? Half::decode(Half::encode($back)) : unpack('g', pack('g', $back))[1];
            if ($back === $value) {
                break;
            }
        }
        return $text;
    }

    /** Compares two values by their datatype; a NaN is below every number. */
    public static function compare(string $datatype, int|float $a, int|float $b): int
    {
        if ($datatype === 'UINT64') {
            return ($a ^ PHP_INT_MIN) <=> ($b ^ PHP_INT_MIN);
        }
        if (is_nan((float) $a) || is_nan((float) $b)) {
            return is_nan((float) $b) <=> is_nan((float) $a);
        }
        return $a <=> $b;
    }
}
