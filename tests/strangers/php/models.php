<?php
declare(strict_types=1);

require_once __DIR__ . '/toml.php';
require_once __DIR__ . '/tensor.php';

/** What a model says of one of its tensors; the shape is without the batch dimension. */
final class TensorSpec
{
    /** @param list<int> $shape */
    public function __construct(
        public readonly string $name,
        public readonly string $datatype,
        public readonly array $shape,
    ) {
    }

    public static function fromRole(array $spec): self
    {
        return new self($spec['name'], $spec['datatype'], $spec['shape']);
    }
}

final class Model
{
    public const VERSION = '1';
    public const PLATFORM = 'onnx_onnxv1';
    public const MAX_BATCH = 64;
    private const MAX_EMITTED = 1 << 24;

    /**
     * @param array<string, TensorSpec> $inputs by name, in the declared order
     * @param array<string, TensorSpec> $outputs
     * @param array<string, list<string>> $labels
     */
    private function __construct(
        public readonly string $name,
        public readonly bool $batching,
        public readonly array $inputs,
        public readonly array $outputs,
        public readonly array $labels,
        private readonly string $compute,
        private readonly array $table,
    ) {
    }

    /** The models of a roles file; optional roles, and those of datatypes that no document defines, are left out. */
    public static function loadAll(string $file): array
    {
        $models = [];
        foreach (Toml::parse(file_get_contents($file)) as $name => $role) {
            $datatypes = array_column([...$role['inputs'], ...$role['outputs']], 'datatype');
            $known = array_filter($datatypes, Datatype::known(...)) === $datatypes;
            if ($known && !($role['optional'] ?? false)) {
                $models[$name] = new self(
                    (string) $name,
                    $role['batching'] ?? false,
                    self::specs($role['inputs']),
                    self::specs($role['outputs']),
                    $role['labels'] ?? [],
                    $role['compute'],
                    $role['table'] ?? [],
                );
            }
        }
        return $models;
    }

    private static function specs(array $specs): array
    {
        return array_column(array_map(TensorSpec::fromRole(...), $specs), null, 'name');
    }

    /** The shape with the batch dimension, if the model takes one. */
    public function fullShape(TensorSpec $spec): array
    {
        return $this->batching ? [-1, ...$spec->shape] : $spec->shape;
    }

    /** Refuses a shape that the model does not take. */
    public function checkShape(TensorSpec $spec, array $shape): void
    {
        $expected = $this->fullShape($spec);
        $fits = count($shape) === count($expected);
        foreach ($fits ? $expected : [] as $i => $size) {
            $fits = $fits && ($size === -1 || $size === $shape[$i]);
        }
        if (!$fits) {
            throw new ApiError(sprintf(
                "input '%s': shape [%s], the model takes [%s]",
                $spec->name,
                implode(',', $shape),
                implode(',', $expected),
            ));
        }
        if ($this->batching && $shape[0] > self::MAX_BATCH) {
            throw new ApiError("input '$spec->name': a batch of $shape[0] exceeds " . self::MAX_BATCH);
        }
    }

    /**
     * Runs the model.
     *
     * @param array<string, Tensor> $inputs by name
     * @return array<string, Tensor> by name
     */
    public function run(array $inputs): array
    {
        $ordered = [];
        foreach ($this->inputs as $name => $_) {
            $ordered[] = $inputs[$name];
        }
        if ($this->batching && count(array_unique(array_map(static fn (Tensor $t) => $t->shape[0], $ordered))) > 1) {
            throw new ApiError('the inputs differ in the size of the batch');
        }
        $results = match ($this->compute) {
            'identity' => array_map(static fn (Tensor $t) => [$t->shape, $t->bytes], $ordered),
            'cast' => [[$ordered[0]->shape, $ordered[0]->values()]],
            'add_sub' => self::addSub($inputs['A'], $inputs['B']),
            'length' => [[$ordered[0]->shape, array_map(strlen(...), $ordered[0]->values())]],
            'weighted_sum' => [[[1], [self::weightedSum($ordered[0]->values())]]],
            'emit' => self::emit($ordered[0]->values()),
            'text' => [
                [$ordered[0]->shape, $ordered[0]->bytes],
                [$ordered[0]->shape, array_map(strval(...), $ordered[0]->values())],
            ],
            'table' => [[[$ordered[0]->shape[0] * $ordered[0]->shape[1]], $this->lookUp($ordered[0]->values())]],
            'documented_binary' => [[[3, 2], self::pairs($ordered[1]->values(), $ordered[0]->values())]],
            'documented_mixed' => [
                [[3, 2], self::pairs($ordered[2]->values(), $ordered[0]->values())],
                [[2, 2], array_map(static fn ($a, $b) => $a + $b, $ordered[0]->values(), $ordered[1]->values())],
            ],
            'documented_all_outputs' => self::allOutputs(...$ordered[0]->values()),
            'documented_raw' => [
                [[3, 1], array_slice($ordered[0]->values(), 0, 3)],
                [[3, 1], array_slice($ordered[0]->values(), 1, 3)],
            ],
            default => throw new ApiError("the model '$this->name' has no known computation", 500),
        };
        $outputs = [];
        foreach (array_values($this->outputs) as $i => $spec) {
            [$shape, $data] = $results[$i];
            $outputs[$spec->name] = is_string($data)
                ? new Tensor($spec->name, $spec->datatype, $shape, $data)
                : Tensor::of($spec->name, $spec->datatype, $shape, $data);
        }
        return $outputs;
    }

    private static function addSub(Tensor $a, Tensor $b): array
    {
        if ($a->shape !== $b->shape) {
            throw new ApiError('the inputs A and B differ in shape');
        }
        $left = $a->values();
        $right = $b->values();
        return [
            [$a->shape, array_map(static fn (int $x, int $y) => $x + $y, $left, $right)],
            [$a->shape, array_map(static fn (int $x, int $y) => $x - $y, $left, $right)],
        ];
    }

    private static function weightedSum(array $values): int
    {
        $sum = 0;
        foreach ($values as $k => $value) {
            $sum += ($k + 1) * $value;
        }
        return $sum;
    }

    private static function emit(array $counts): array
    {
        [$numbers, $texts] = $counts;
        if (min($counts) < 0 || max($counts) > self::MAX_EMITTED) {
            throw new ApiError("COUNTS [$numbers, $texts] out of range");
        }
        return [
            [[$numbers], $numbers > 0 ? range(1, $numbers) : []],
            [[$texts], $texts > 0 ? array_map(static fn (int $i) => "t$i", range(1, $texts)) : []],
        ];
    }

    private function lookUp(array $keys): array
    {
        return array_map(
            fn (int $key) => $this->table[$key - 1] ?? throw new ApiError("element $key is not in the model's table"),
            $keys,
        );
    }

    /** Row k is [first[k], second[k]]. */
    private static function pairs(array $first, array $second): array
    {
        $row = [];
        foreach ($first as $k => $value) {
            array_push($row, (float) $value, (float) $second[$k]);
        }
        return $row;
    }

    private static function allOutputs(float $a, float $b): array
    {
        return [[[3, 2], [$a, $b, $b, $a, 0.0, 0.0]], [[2, 2], [$a, $b, $b, $a]]];
    }
}
