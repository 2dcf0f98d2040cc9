package main

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"strconv"
)

const (
	maxBatch = 8
	maxEmit  = 2_000_000 // elements of an output of "emit", against exhausting memory
)

type TensorSpec struct {
	Name     string
	Datatype string
	Shape    []int // -1: variable; without the batch dimension
}

// A computation gets the inputs and returns the outputs in declared order. The
// outputs may share the inputs' memory, which must not be changed.
type computation func(in []Tensor) ([]Tensor, error)

type Model struct {
	Name     string
	Inputs   []TensorSpec
	Outputs  []TensorSpec
	Run      computation
	Batching bool
	Labels   map[string][]string // by output
}

// fullShape is the shape as clients see it: "the shape and data must represent
// the full shape and contents of the entire batch".
func (m *Model) fullShape(spec TensorSpec) []int {
	full := []int{}
	if m.Batching {
		full = append(full, -1)
	}
	return append(full, spec.Shape...)
}

func (m *Model) metadata() any {
	describe := func(specs []TensorSpec) []map[string]any {
		var list []map[string]any
		for _, s := range specs {
			list = append(list, map[string]any{"name": s.Name, "datatype": s.Datatype, "shape": m.fullShape(s)})
		}
		return list
	}
	return map[string]any{
		"name":     m.Name,
		"versions": []string{modelVersion},
		"platform": platform,
		"inputs":   describe(m.Inputs),
		"outputs":  describe(m.Outputs),
	}
}

var models = []Model{
	echo("identity_bool", "BOOL", -1),
	echo("identity_uint8", "UINT8", -1),
	echo("identity_uint16", "UINT16", -1),
	echo("identity_uint32", "UINT32", -1),
	echo("identity_uint64", "UINT64", -1),
	echo("identity_int8", "INT8", -1),
	echo("identity_int16", "INT16", -1),
	echo("identity_int32", "INT32", -1),
	echo("identity_int64", "INT64", -1),
	echo("identity_fp16", "FP16", -1),
	echo("identity_fp32", "FP32", -1),
	echo("identity_fp64", "FP64", -1),
	echo("identity_bytes", "BYTES", -1),
	echo("identity_bf16", "BF16", -1),
	echo("rank0", "INT32"),
	echo("rank2", "INT32", -1, -1),
	echo("rank3", "INT16", -1, -1, -1),
	echo("rank4", "FP64", -1, -1, -1, -1),
	echo("rank2_bytes", "BYTES", -1, -1),
	batching(echo("batching", "INT32", 3)),
	echo("fixed", "INT32", 2, 3),
	model("multi",
		tensors(spec("IN_INT64", "INT64", -1), spec("IN_BOOL", "BOOL", -1), spec("IN_FP32", "FP32", -1), spec("IN_BYTES", "BYTES", -1)),
		tensors(spec("OUT_INT64", "INT64", -1), spec("OUT_BOOL", "BOOL", -1), spec("OUT_FP32", "FP32", -1), spec("OUT_BYTES", "BYTES", -1)),
		identity),
	model("emit",
		tensors(spec("COUNTS", "INT32", 2)),
		tensors(spec("NUMBERS", "INT32", -1), spec("TEXTS", "BYTES", -1)),
		emit),
	single("cast_int32_fp32", "INT32", "FP32", each(toFloat), -1),
	single("cast_fp16_fp32", "FP16", "FP32", each(fromFP16), -1),
	single("cast_fp32_fp16", "FP32", "FP16", each(toFP16), -1),
	single("cast_bf16_fp32", "BF16", "FP32", each(fromBF16), -1),
	single("cast_fp32_bf16", "FP32", "BF16", each(toBF16), -1),
	model("add_sub",
		tensors(spec("B", "INT32", -1), spec("A", "INT32", -1)),
		tensors(spec("SUM", "INT32", -1), spec("DIFFERENCE", "INT32", -1)),
		addSub),
	model("string_length",
		tensors(spec("INPUT", "BYTES", -1)),
		tensors(spec("LENGTH", "INT32", -1)),
		stringLength),
	model("weighted_sum",
		tensors(spec("INPUT", "INT32", -1, -1)),
		tensors(spec("OUTPUT", "INT64", 1)),
		weightedSum),
	single("raw_fixed", "INT32", "FP32", each(toFloat), 2, 2),
	single("raw_variable", "INT32", "FP32", each(toFloat), -1, 2),
	echo("raw_middle", "INT16", 2, -1, 3),
	echo("raw_two_variable", "INT32", -1, -1),
	echo("raw_bytes_one", "BYTES", 1),
	echo("raw_bytes_two", "BYTES", 2),
	echo("raw_bytes_variable", "BYTES", -1),
	model("raw_two_inputs",
		tensors(spec("INPUT0", "INT32", -1), spec("INPUT1", "INT32", -1)),
		tensors(spec("OUTPUT0", "INT32", -1), spec("OUTPUT1", "INT32", -1)),
		identity),
	model("raw_two_outputs",
		tensors(spec("INPUT", "INT32", -1)),
		tensors(spec("NUMBER", "INT32", -1), spec("TEXT", "BYTES", -1)),
		numberAndText),
	batching(single("raw_batching", "INT32", "FP32", each(toFloat), 4)),
	batching(single("raw_batching_variable", "INT32", "FP32", each(toFloat), -1)),
	scores("scores", nil, 4),
	scores("scores_labelled", animals, 4),
	scores("scores_some_labels", animals[:2], 4),
	scores("scores_odd_labels", []string{"a:b:c", "two words", "Füße", "猫"}, 4),
	batching(scores("scores_batching", nil, 4)),
	batching(scores("scores_batching_labelled", animals, 4)),
	scores("scores_rank2", nil, 2, 3),
	batching(scores("scores_batching_rank2", animals, 2, 2)),
	labelled("RANKS", []string{"low", "middle", "high"}, model("scores_two_outputs",
		tensors(spec("IN_SCORES", "FP32", 4), spec("IN_RANKS", "INT32", 3)),
		tensors(spec("SCORES", "FP32", 4), spec("RANKS", "INT32", 3)),
		identity)),
	model("documented_binary",
		tensors(spec("input0", "UINT32", 2, 2), spec("input1", "BOOL", 3)),
		tensors(spec("output0", "FP32", 3, 2)),
		documentedBinary),
	model("documented_mixed",
		tensors(spec("input0", "FP16", 2, 2), spec("input1", "UINT32", 2, 2), spec("input2", "BOOL", 3)),
		tensors(spec("output0", "FP16", 3, 2), spec("output1", "FP32", 2, 2)),
		documentedMixed),
	model("documented_all_outputs",
		tensors(spec("input_tensor", "FP32", 1, 2)),
		tensors(spec("output_tensor0", "FP16", 3, 2), spec("output_tensor1", "FP32", 2, 2)),
		documentedAllOutputs),
	model("documented_raw",
		tensors(spec("input", "FP32", 4)),
		tensors(spec("output0", "FP32", 3, 1), spec("output1", "FP32", 3, 1)),
		documentedRaw),
	documentedScores("documented_scores", nil),
	documentedScores("documented_scores_labelled",
		[]string{"index_0_label", "index_1_label", "index_2_label", "index_3_label"}),
}

var animals = []string{"cat", "dog", "bird", "fish"}

func spec(name, datatype string, shape ...int) TensorSpec { return TensorSpec{name, datatype, shape} }

func tensors(specs ...TensorSpec) []TensorSpec { return specs }

func model(name string, in, out []TensorSpec, run computation) Model {
	return Model{Name: name, Inputs: in, Outputs: out, Run: run}
}

func single(name, in, out string, run computation, shape ...int) Model {
	return model(name, tensors(spec("INPUT", in, shape...)), tensors(spec("OUTPUT", out, shape...)), run)
}

func echo(name, datatype string, shape ...int) Model {
	return single(name, datatype, datatype, identity, shape...)
}

func scores(name string, labels []string, shape ...int) Model {
	m := echo(name, "FP32", shape...)
	m.Outputs[0].Name = "SCORES"
	return labelled("SCORES", labels, m)
}

func documentedScores(name string, labels []string) Model {
	m := model(name, tensors(spec("input0", "UINT32", 2, 2)), tensors(spec("output0", "FP32", 4)), pickScores)
	return labelled("output0", labels, m)
}

func labelled(output string, labels []string, m Model) Model {
	m.Labels = map[string][]string{output: labels}
	return m
}

func batching(m Model) Model {
	m.Batching = true
	return m
}

// values and pack go between the binary form and Go's numbers; the datatype has
// been checked, so the sizes fit.
func values[T any](t Tensor) []T {
	var zero T
	v := make([]T, len(t.Data)/binary.Size(zero))
	if err := binary.Read(bytes.NewReader(t.Data), binary.LittleEndian, v); err != nil {
		panic(err)
	}
	return v
}

func pack[T any](v []T, shape ...uint64) Tensor {
	var buf bytes.Buffer
	if err := binary.Write(&buf, binary.LittleEndian, v); err != nil {
		panic(err)
	}
	return Tensor{shape, buf.Bytes()}
}

func identity(in []Tensor) ([]Tensor, error) { return in, nil }

func toFloat(v int32) float32 { return float32(v) }

func each[A, B any](f func(A) B) computation {
	return func(in []Tensor) ([]Tensor, error) {
		src := values[A](in[0])
		dst := make([]B, len(src))
		for i, v := range src {
			dst[i] = f(v)
		}
		return []Tensor{pack(dst, in[0].Shape...)}, nil
	}
}

func emit(in []Tensor) ([]Tensor, error) {
	counts := values[int32](in[0])
	for _, n := range counts {
		if n < 0 || n > maxEmit {
			return nil, badRequest("COUNTS must be from 0 to %d, not %d", maxEmit, n)
		}
	}
	numbers := make([]int32, counts[0])
	for i := range numbers {
		numbers[i] = int32(i + 1)
	}
	var texts []byte
	for i := 1; i <= int(counts[1]); i++ {
		texts = appendBytes(texts, []byte("t"+strconv.Itoa(i)))
	}
	return []Tensor{pack(numbers, uint64(counts[0])), {[]uint64{uint64(counts[1])}, texts}}, nil
}

func addSub(in []Tensor) ([]Tensor, error) {
	b, a := values[int32](in[0]), values[int32](in[1])
	if len(a) != len(b) {
		return nil, badRequest("A has %d elements, B has %d", len(a), len(b))
	}
	sum, difference := make([]int32, len(a)), make([]int32, len(a))
	for i := range a {
		s, d := int64(a[i])+int64(b[i]), int64(a[i])-int64(b[i])
		sum[i], difference[i] = int32(s), int32(d)
		if int64(sum[i]) != s || int64(difference[i]) != d {
			return nil, badRequest("element %d: the result does not fit INT32", i)
		}
	}
	return []Tensor{pack(sum, in[1].Shape...), pack(difference, in[1].Shape...)}, nil
}

func stringLength(in []Tensor) ([]Tensor, error) {
	items, err := splitBytes(in[0].Data)
	lengths := make([]int32, len(items))
	for i, item := range items {
		lengths[i] = int32(len(item))
	}
	return []Tensor{pack(lengths, in[0].Shape...)}, err
}

func weightedSum(in []Tensor) ([]Tensor, error) {
	var sum, term big.Int
	for k, v := range values[int32](in[0]) {
		sum.Add(&sum, term.SetInt64(int64(k+1)*int64(v)))
	}
	if !sum.IsInt64() {
		return nil, badRequest("the sum does not fit INT64")
	}
	return []Tensor{pack([]int64{sum.Int64()}, 1)}, nil
}

func numberAndText(in []Tensor) ([]Tensor, error) {
	var texts []byte
	for _, v := range values[int32](in[0]) {
		texts = appendBytes(texts, strconv.AppendInt(nil, int64(v), 10))
	}
	return []Tensor{in[0], {in[0].Shape, texts}}, nil
}

func pickScores(in []Tensor) ([]Tensor, error) {
	table := []float32{1.1, 3.3, 0.5, 2.4}
	var picked []float32
	for _, v := range values[uint32](in[0]) {
		if v < 1 || int64(v) > int64(len(table)) {
			return nil, badRequest("input0 must be from 1 to %d, not %d", len(table), v)
		}
		picked = append(picked, table[v-1])
	}
	return []Tensor{pack(picked, 4)}, nil
}

func documentedBinary(in []Tensor) ([]Tensor, error) {
	numbers, flags := values[uint32](in[0]), in[1].Data
	var rows []float32
	for k := range flags {
		rows = append(rows, float32(flags[k]), float32(numbers[k]))
	}
	return []Tensor{pack(rows, 3, 2)}, nil
}

func documentedMixed(in []Tensor) ([]Tensor, error) {
	halves, numbers, flags := values[uint16](in[0]), values[uint32](in[1]), in[2].Data
	var rows []uint16
	for k := range flags {
		rows = append(rows, toFP16(float32(flags[k])), halves[k])
	}
	var sums []float32
	for k := range halves {
		sums = append(sums, float32(float64(fromFP16(halves[k]))+float64(numbers[k])))
	}
	return []Tensor{pack(rows, 3, 2), pack(sums, 2, 2)}, nil
}

func documentedAllOutputs(in []Tensor) ([]Tensor, error) {
	v := values[float32](in[0])
	a, b := toFP16(v[0]), toFP16(v[1])
	return []Tensor{
		pack([]uint16{a, b, b, a, 0, 0}, 3, 2),
		pack([]float32{v[0], v[1], v[1], v[0]}, 2, 2),
	}, nil
}

func documentedRaw(in []Tensor) ([]Tensor, error) {
	v := values[float32](in[0])
	return []Tensor{pack(v[:3], 3, 1), pack(v[1:], 3, 1)}, nil
}
