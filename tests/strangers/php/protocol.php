<?php
declare(strict_types=1);

require_once __DIR__ . '/http.php';
require_once __DIR__ . '/models.php';

/** The endpoints of the protocol. */
final class Protocol
{
    private const NAME = 'stranger-php';
    private const VERSION = '1.0.0';
    private const EXTENSIONS = ['binary_tensor_data', 'classification'];

    /** @param array<string, Model> $models */
    public function __construct(private readonly array $models)
    {
    }

    public function answer(Request $request): Response
    {
        try {
            return $this->route($request);
        } catch (ApiError $error) {
            return Response::error($error->getMessage(), $error->status);
        } catch (Throwable $error) {
            fwrite(STDERR, "$error\n");
            return Response::error('internal error', 500);
        }
    }

    private function route(Request $request): Response
    {
        $path = $request->segments();
        if ($path[0] !== 'v2') {
            throw new ApiError('no such path', 404);
        }
        $rest = array_slice($path, 1);
        if ($rest === []) {
            return $this->get($request, fn () => Response::json([
                'name' => self::NAME,
                'version' => self::VERSION,
                'extensions' => self::EXTENSIONS,
            ]));
        }
        if ($rest === ['health', 'live'] || $rest === ['health', 'ready']) {
            return $this->get($request, static fn () => Response::json(['live' => true]));
        }
        if ($rest[0] !== 'models' || count($rest) < 2) {
            throw new ApiError('no such path', 404);
        }
        $action = array_slice($rest, 2);
        $version = null;
        if (($action[0] ?? '') === 'versions' && isset($action[1])) {
            $version = $action[1];
            $action = array_slice($action, 2);
        }
        return match ($action) {
            [] => $this->get($request, fn () => $this->metadata($this->model($rest[1], $version))),
            ['ready'] => $this->get($request, fn () => Response::json([
                'name' => $this->model($rest[1], $version)->name,
                'ready' => true,
            ])),
            ['infer'] => $request->method === 'POST'
                ? (new Inference($this->model($rest[1], $version), $request))->answer()
                : $this->wrongMethod('POST'),
            default => throw new ApiError('no such path', 404),
        };
    }

    private function get(Request $request, Closure $answer): Response
    {
        return in_array($request->method, ['GET', 'HEAD'], true) ? $answer() : $this->wrongMethod('GET, HEAD');
    }

    private function wrongMethod(string $allowed): Response
    {
        return Response::error("this path takes $allowed", 405, ['Allow' => $allowed]);
    }

    private function model(string $name, ?string $version): Model
    {
        $model = $this->models[$name] ?? throw new ApiError("unknown model '$name'", 404);
        if ($version !== null && $version !== Model::VERSION) {
            throw new ApiError("model '$name' has no version '$version'", 404);
        }
        return $model;
    }

    private function metadata(Model $model): Response
    {
        $describe = static fn (TensorSpec $spec) => [
            'name' => $spec->name,
            'datatype' => $spec->datatype,
            'shape' => $model->fullShape($spec),
        ];
        return Response::json([
            'name' => $model->name,
            'versions' => [Model::VERSION],
            'platform' => Model::PLATFORM,
            'inputs' => array_map($describe, array_values($model->inputs)),
            'outputs' => array_map($describe, array_values($model->outputs)),
        ]);
    }
}

/** What a request asks of one output. */
final class WantedOutput
{
    public function __construct(
        public readonly string $name,
        public readonly bool $binary,
        public readonly int $classes = 0,
    ) {
    }
}

/** One inference request to one model. */
final class Inference
{
    private const MAX_CONTENT = 1 << 29;

    private string $binary = '';
    private int $taken = 0;

    public function __construct(private readonly Model $model, private readonly Request $request)
    {
    }

    public function answer(): Response
    {
        $content = $this->request->content(self::MAX_CONTENT);
        $length = $this->headerLength(strlen($content));
        if ($length === 0) {
            $outputs = $this->model->run($this->rawInput($content));
            $wanted = array_map(static fn (string $name) => new WantedOutput($name, true), array_keys($outputs));
            return $this->response([], $outputs, $wanted);
        }
        $json = $length === null ? $content : substr($content, 0, $length);
        $this->binary = $length === null ? '' : substr($content, $length);
        $body = json_decode($json, false, 512, JSON_BIGINT_AS_STRING);
        if (!$body instanceof stdClass) {
            throw new ApiError(json_last_error() === JSON_ERROR_NONE
                ? 'the request is no JSON object' : 'malformed JSON: ' . json_last_error_msg());
        }
        $id = $body->id ?? null;
        if ($id !== null && !is_string($id)) {
            throw new ApiError('"id" must be a string');
        }
        $inputs = $this->inputs($body);
        $wanted = $this->wantedOutputs($body);
        return $this->response($id === null ? [] : ['id' => $id], $this->model->run($inputs), $wanted);
    }

    /** The length of the JSON object in front of binary data; null if there is no binary data. */
    private function headerLength(int $whole): ?int
    {
        $value = $this->request->header('Inference-Header-Content-Length');
        if ($value === null) {
            return null;
        }
        if (preg_match('/^\d{1,18}$/', $value) !== 1 || (int) $value > $whole) {
            throw new ApiError("Inference-Header-Content-Length: '$value' is no length within the body");
        }
        return (int) $value;
    }

    /** The only input of a raw binary request: its shape follows from its size. */
    private function rawInput(string $bytes): array
    {
        $spec = current($this->model->inputs);
        $variable = count(array_keys($spec->shape, -1, true));
        $eligible = count($this->model->inputs) === 1
            && ($spec->datatype === 'BYTES' ? $spec->shape === [1] : $variable <= 1);
        if (!$eligible) {
            throw new ApiError("the model '{$this->model->name}' takes no raw binary request");
        }
        $shape = $spec->shape;
        if ($variable === 1) {
            $step = Datatype::size($spec->datatype);
            foreach ($shape as $size) {
                $step *= $size === -1 ? 1 : $size;
            }
            if (strlen($bytes) % $step !== 0) {
                throw new ApiError('raw input: ' . strlen($bytes) . " bytes are no multiple of $step");
            }
            $shape[array_search(-1, $shape, true)] = intdiv(strlen($bytes), $step);
        }
        if ($this->model->batching) {
            array_unshift($shape, 1);
        }
        Datatype::checkBinary($spec->name, $spec->datatype, $bytes, (int) array_product($shape));
        return [$spec->name => new Tensor($spec->name, $spec->datatype, $shape, $bytes)];
    }

    /** @return array<string, Tensor> by name */
    private function inputs(stdClass $body): array
    {
        $inputs = [];
        foreach ($this->objects($body, 'inputs') as $item) {
            $tensor = $this->input($item);
            if (isset($inputs[$tensor->name])) {
                throw new ApiError("input '$tensor->name' is given twice");
            }
            $inputs[$tensor->name] = $tensor;
        }
        if ($this->taken !== strlen($this->binary)) {
            throw new ApiError(strlen($this->binary) . " bytes of binary data, the inputs take $this->taken");
        }
        foreach ($this->model->inputs as $name => $_) {
            isset($inputs[$name]) || throw new ApiError("input '$name' is missing");
        }
        return $inputs;
    }

    private function input(stdClass $item): Tensor
    {
        $name = $this->name($item);
        $spec = $this->model->inputs[$name] ?? throw new ApiError("the model has no input '$name'");
        $datatype = $item->datatype ?? null;
        if ($datatype !== $spec->datatype) {
            throw new ApiError("input '$name': the datatype is $spec->datatype");
        }
        $shape = $item->shape ?? null;
        if (!is_array($shape)) {
            throw new ApiError("input '$name': \"shape\" must be an array");
        }
        foreach ($shape as $size) {
            if (!is_int($size) || $size < 0) {
                throw new ApiError("input '$name': a dimension must be a whole number of zero or more");
            }
        }
        $this->model->checkShape($spec, $shape);
        $count = array_product($shape);
        if (!is_int($count)) {
            throw new ApiError("input '$name': the shape is too large");
        }
        $size = $this->parameters($item)->binary_data_size ?? null;
        if ($size === null) {
            $values = $this->jsonValues($name, $item->data ?? null, $shape, $count);
            foreach ($values as $k => $value) {
                $values[$k] = Datatype::fromJson($name, $datatype, $value);
            }
            return Tensor::of($name, $datatype, $shape, $values);
        }
        if (isset($item->data)) {
            throw new ApiError("input '$name': both \"data\" and \"binary_data_size\" are given");
        }
        $bytes = $this->takeBinary($name, $size);
        Datatype::checkBinary($name, $datatype, $bytes, $count);
        return new Tensor($name, $datatype, $shape, $bytes);
    }

    /** The binary data follows the JSON object in the order of the inputs. */
    private function takeBinary(string $name, mixed $size): string
    {
        if (!is_int($size) || $size < 0) {
            throw new ApiError("input '$name': \"binary_data_size\" must be a whole number of zero or more");
        }
        if ($size > strlen($this->binary) - $this->taken) {
            throw new ApiError("input '$name': $size bytes of binary data exceed the body");
        }
        $bytes = substr($this->binary, $this->taken, $size);
        $this->taken += $size;
        return $bytes;
    }

    /** The elements of "data", which is flat or nested as the shape. */
    private function jsonValues(string $name, mixed $data, array $shape, int $count): array
    {
        if (!is_array($data)) {
            throw new ApiError("input '$name': \"data\" must be an array");
        }
        $flat = $data;
        if (is_array($data[0] ?? null)) {
            foreach ($shape as $level => $size) {
                if ($level > 0) {
                    $flat = $this->flattenOnce($name, $flat, $size);
                } elseif (count($flat) !== $size) {
                    throw new ApiError("input '$name': \"data\" is not nested as the shape");
                }
            }
        }
        if (count($flat) !== $count) {
            throw new ApiError("input '$name': " . count($flat) . " elements, the shape needs $count");
        }
        return $flat;
    }

    private function flattenOnce(string $name, array $rows, int $size): array
    {
        $flat = [];
        foreach ($rows as $row) {
            if (!is_array($row) || count($row) !== $size) {
                throw new ApiError("input '$name': \"data\" is not nested as the shape");
            }
            foreach ($row as $value) {
                $flat[] = $value;
            }
        }
        return $flat;
    }

    /** @return list<WantedOutput> in the order of the answer */
    private function wantedOutputs(stdClass $body): array
    {
        $binary = $this->flag($this->parameters($body), 'binary_data_output') ?? false;
        $items = isset($body->outputs) ? $this->objects($body, 'outputs') : [];
        if ($items === []) {
            $names = array_keys($this->model->outputs);
            return array_map(static fn (string $name) => new WantedOutput($name, $binary), $names);
        }
        $wanted = [];
        foreach ($items as $item) {
            $name = $this->name($item);
            if (!isset($this->model->outputs[$name])) {
                throw new ApiError("the model has no output '$name'");
            }
            if (isset($wanted[$name])) {
                throw new ApiError("output '$name' is requested twice");
            }
            $parameters = $this->parameters($item);
            $wanted[$name] = new WantedOutput(
                $name,
                $this->flag($parameters, 'binary_data') ?? $binary,
                $this->classes($name, $parameters),
            );
        }
        return array_values($wanted);
    }

    private function classes(string $name, stdClass $parameters): int
    {
        $count = $parameters->classification ?? null;
        if ($count === null) {
            return 0;
        }
        if (!is_int($count) || $count < 1) {
            throw new ApiError("output '$name': \"classification\" must be a whole number of one or more");
        }
        if (in_array($this->model->outputs[$name]->datatype, ['BYTES', 'BOOL'], true)) {
            throw new ApiError("output '$name' has no scores to classify");
        }
        return $count;
    }

    /** @return list<stdClass> */
    private function objects(stdClass $body, string $member): array
    {
        $items = $body->$member ?? null;
        if (!is_array($items)) {
            throw new ApiError("\"$member\" must be an array");
        }
        foreach ($items as $item) {
            if (!$item instanceof stdClass) {
                throw new ApiError("\"$member\" must hold objects");
            }
        }
        return $items;
    }

    private function name(stdClass $item): string
    {
        $name = $item->name ?? null;
        return is_string($name) ? $name : throw new ApiError('a tensor needs a "name"');
    }

    private function parameters(stdClass $item): stdClass
    {
        $parameters = $item->parameters ?? new stdClass();
        return $parameters instanceof stdClass ? $parameters : throw new ApiError('"parameters" must be an object');
    }

    private function flag(stdClass $parameters, string $name): ?bool
    {
        $value = $parameters->$name ?? null;
        return $value === null || is_bool($value) ? $value : throw new ApiError("\"$name\" must be true or false");
    }

    /**
     * @param array<string, string> $head members in front of the outputs
     * @param array<string, Tensor> $outputs what the model computed
     * @param list<WantedOutput> $wanted
     */
    private function response(array $head, array $outputs, array $wanted): Response
    {
        $texts = [];
        $binary = null;
        foreach ($wanted as $want) {
            $tensor = $outputs[$want->name];
            if ($want->classes > 0) {
                $tensor = $this->classify($tensor, $want->classes);
            }
            $members = [
                'name' => $tensor->name,
                'shape' => $tensor->shape,
                'datatype' => $tensor->datatype,
            ];
            if ($want->binary) {
                $members['parameters'] = ['binary_data_size' => strlen($tensor->bytes)];
                $texts[] = self::encode($members);
                $binary .= $tensor->bytes;
            } else {
                $texts[] = substr(self::encode($members), 0, -1) . ',"data":' . Datatype::toJson($tensor) . '}';
            }
        }
        $head = ['model_name' => $this->model->name, 'model_version' => Model::VERSION] + $head;
        $json = substr(self::encode($head), 0, -1) . ',"outputs":[' . implode(',', $texts) . ']}';
        if ($binary === null) {
            return new Response(200, $json, ['Content-Type' => 'application/json']);
        }
        return new Response(200, $json . $binary, [
            'Content-Type' => 'application/octet-stream',
            'Inference-Header-Content-Length' => (string) strlen($json),
        ]);
    }

    private static function encode(array $members): string
    {
        return json_encode($members, JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR);
    }

    /** The highest elements of each item of the batch, or of the whole tensor, as BYTES. */
    private function classify(Tensor $tensor, int $count): Tensor
    {
        $values = $tensor->values();
        $items = $this->model->batching ? $tensor->shape[0] : 1;
        $classes = $items === 0 ? 0 : intdiv(count($values), $items);
        if ($items > 0 && $count > $classes) {
            throw new ApiError("output '$tensor->name': $count classes asked for, it has $classes");
        }
        $labels = $this->model->labels[$tensor->name] ?? [];
        $found = [];
        for ($item = 0; $item < $items; $item++) {
            $scores = array_slice($values, $item * $classes, $classes);
            // uasort() is stable: of equal scores the one of the lower index comes first
            uasort($scores, static fn ($a, $b) => Datatype::compare($tensor->datatype, $b, $a));
            foreach (array_slice($scores, 0, $count, true) as $index => $score) {
                $found[] = Datatype::text($tensor->datatype, $score) . ":$index"
                    . (isset($labels[$index]) ? ":$labels[$index]" : '');
            }
        }
        return Tensor::of($tensor->name, 'BYTES', $this->model->batching ? [$items, $count] : [$count], $found);
    }
}
