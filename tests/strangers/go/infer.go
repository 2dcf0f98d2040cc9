package main

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"sort"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// inferRequest is a request after all checks: inputs in the order the model
// declares them, outputs in the order they were asked for.
type inferRequest struct {
	id      *string
	inputs  []Tensor
	outputs []wantedOutput
}

type wantedOutput struct {
	index   int // into Model.Outputs
	binary  bool
	classes uint64 // 0: no classification
}

type inferResponse struct {
	ModelName    string           `json:"model_name"`
	ModelVersion string           `json:"model_version"`
	ID           *string          `json:"id,omitempty"`
	Outputs      []responseOutput `json:"outputs"`
}

type responseOutput struct {
	Name       string          `json:"name"`
	Datatype   string          `json:"datatype"`
	Shape      []uint64        `json:"shape"`
	Parameters map[string]int  `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

func (m *Model) serveInfer(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return notAllowed(w, r, http.MethodPost)
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	req, err := m.parseRequest(r.Header.Values(headerLength), body)
	if err != nil {
		return err
	}
	results, err := m.Run(req.inputs)
	if err != nil {
		return err
	}
	return m.writeResponse(w, req, results)
}

func (m *Model) parseRequest(header []string, body []byte) (*inferRequest, error) {
	switch len(header) {
	case 0:
		return m.parseJSON(body, nil)
	case 1:
		n, err := strconv.ParseUint(header[0], 10, 63)
		if err != nil {
			return nil, badRequest("%s: %q is not a length", headerLength, header[0])
		}
		if n > uint64(len(body)) {
			return nil, badRequest("%s is %d, but the body has %d bytes", headerLength, n, len(body))
		}
		if n == 0 {
			return m.parseRaw(body)
		}
		return m.parseJSON(body[:n], body[n:])
	}
	return nil, badRequest("%s is given %d times", headerLength, len(header))
}

// parseRaw takes a raw binary request (triton-binary-tensor-data.md). Its body
// "only contains the binary data of the tensor", so BYTES keep their length.
func (m *Model) parseRaw(body []byte) (*inferRequest, error) {
	if len(m.Inputs) != 1 {
		return nil, badRequest("model %q has %d inputs, a raw binary request is for models of one", m.Name, len(m.Inputs))
	}
	in := m.Inputs[0]
	d := datatypes[in.Datatype]
	if d.kind == kindBytes && !(len(in.Shape) == 1 && in.Shape[0] == 1) {
		return nil, badRequest("a raw binary request of BYTES is for inputs of shape [1], not %v", in.Shape)
	}
	shape, variable, known := []uint64{}, -1, d.size
	if m.Batching {
		shape = append(shape, 1) // "the request will be treated as batch-1 request"
	}
	for _, dim := range in.Shape {
		if dim >= 0 {
			shape, known = append(shape, uint64(dim)), known*dim
			continue
		}
		if variable >= 0 {
			return nil, badRequest("a raw binary request is for inputs of at most one variable dimension, not %v", in.Shape)
		}
		variable = len(shape)
		shape = append(shape, 0)
	}
	if variable >= 0 && known > 0 {
		shape[variable] = uint64(len(body) / known)
	}
	if err := d.checkBinary(body, shape); err != nil {
		return nil, err
	}
	// "all the model output will be requested to be returned in binary tensor form"
	return &inferRequest{inputs: []Tensor{{shape, body}}, outputs: m.allOutputs(true)}, nil
}

func (m *Model) allOutputs(binary bool) []wantedOutput {
	all := make([]wantedOutput, len(m.Outputs))
	for i := range all {
		all[i] = wantedOutput{index: i, binary: binary}
	}
	return all
}

func (m *Model) parseJSON(head, tail []byte) (*inferRequest, error) {
	if err := checkJSON(head); err != nil {
		return nil, err
	}
	// Members the documents do not define are ignored: their own examples send
	// "model_name", and one of them with another name than the URL's.
	top, err := object(head, "the request")
	if err != nil {
		return nil, err
	}
	req := &inferRequest{}
	id, hasID, err := member[string](top, "id", "a string")
	if err != nil {
		return nil, err
	}
	if hasID {
		req.id = &id
	}
	params, err := parameters(top)
	if err != nil {
		return nil, err
	}
	binary, _, err := member[bool](params, "binary_data_output", "a boolean")
	if err != nil {
		return nil, err
	}
	inputs, ok, err := member[[]json.RawMessage](top, "inputs", "an array")
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, badRequest("the request has no inputs")
	}
	if req.inputs, err = m.parseInputs(inputs, tail); err != nil {
		return nil, err
	}
	outputs, _, err := member[[]json.RawMessage](top, "outputs", "an array")
	if err != nil {
		return nil, err
	}
	req.outputs, err = m.parseOutputs(outputs, binary)
	return req, err
}

func (m *Model) parseInputs(raws []json.RawMessage, tail []byte) ([]Tensor, error) {
	inputs := make([]Tensor, len(m.Inputs))
	seen := make([]bool, len(m.Inputs))
	for _, raw := range raws {
		in, err := object(raw, "an input")
		if err != nil {
			return nil, err
		}
		i, err := find(in, m.Inputs, seen, "input")
		if err != nil {
			return nil, err
		}
		if inputs[i], tail, err = m.parseInput(m.Inputs[i], in, tail); err != nil {
			return nil, prefix(err, "input "+strconv.Quote(m.Inputs[i].Name)+": ")
		}
	}
	for i, ok := range seen {
		if !ok {
			return nil, badRequest("input %q is missing", m.Inputs[i].Name)
		}
		if m.Batching && inputs[i].Shape[0] != inputs[0].Shape[0] {
			return nil, badRequest("the inputs have different batch sizes")
		}
	}
	if len(tail) > 0 {
		return nil, badRequest("%d bytes of binary data belong to no input", len(tail))
	}
	return inputs, nil
}

// parseInput returns the tensor and the binary data behind it.
func (m *Model) parseInput(spec TensorSpec, in map[string]json.RawMessage, tail []byte) (t Tensor, rest []byte, err error) {
	name, _, err := member[string](in, "datatype", "a string")
	if err != nil {
		return t, nil, err
	}
	if name != spec.Datatype {
		return t, nil, badRequest("datatype is %q, the model's is %s", name, spec.Datatype)
	}
	d := datatypes[name]
	dims, ok, err := member[[]json.RawMessage](in, "shape", "an array")
	if err != nil {
		return t, nil, err
	}
	if !ok {
		return t, nil, badRequest("shape is missing")
	}
	t.Shape = make([]uint64, len(dims))
	for i, dim := range dims {
		if t.Shape[i], err = decode[uint64](dim, "a dimension", "an unsigned 64-bit integer"); err != nil {
			return t, nil, err
		}
	}
	if err = m.checkShape(spec, t.Shape); err != nil {
		return t, nil, err
	}
	params, err := parameters(in)
	if err != nil {
		return t, nil, err
	}
	size, binary, err := member[uint64](params, "binary_data_size", "a size in bytes")
	if err != nil {
		return t, nil, err
	}
	data, explicit := in["data"]
	switch {
	case binary && explicit:
		err = badRequest("both data and binary_data_size are given")
	case explicit:
		t.Data, err = d.parseData(data, t.Shape)
	case !binary:
		err = badRequest("neither data nor binary_data_size is given")
	case size > uint64(len(tail)):
		err = badRequest("binary_data_size is %d, but the body has only %d bytes left (%s has to tell where they begin)", size, len(tail), headerLength)
	default:
		t.Data, tail = tail[:size], tail[size:]
		err = d.checkBinary(t.Data, t.Shape)
	}
	return t, tail, err
}

func (m *Model) checkShape(spec TensorSpec, shape []uint64) error {
	full := m.fullShape(spec)
	fits := len(shape) == len(full)
	for i := 0; fits && i < len(full); i++ {
		fits = full[i] < 0 || uint64(full[i]) == shape[i]
	}
	if !fits {
		return badRequest("shape %v does not fit the model's %v", shape, full)
	}
	if m.Batching && (shape[0] < 1 || shape[0] > maxBatch) {
		return badRequest("a batch of %d, the model takes 1 to %d", shape[0], maxBatch)
	}
	return nil
}

// parseOutputs takes an empty list as one not given: all outputs.
func (m *Model) parseOutputs(raws []json.RawMessage, binary bool) ([]wantedOutput, error) {
	if len(raws) == 0 {
		return m.allOutputs(binary), nil
	}
	var outputs []wantedOutput
	seen := make([]bool, len(m.Outputs))
	for _, raw := range raws {
		out, err := object(raw, "an output")
		if err != nil {
			return nil, err
		}
		i, err := find(out, m.Outputs, seen, "output")
		if err != nil {
			return nil, err
		}
		want := wantedOutput{index: i, binary: binary}
		params, err := parameters(out)
		if err != nil {
			return nil, err
		}
		if b, ok, err := member[bool](params, "binary_data", "a boolean"); err != nil {
			return nil, err
		} else if ok {
			want.binary = b
		}
		n, ok, err := member[uint64](params, "classification", "a number of classes")
		if err != nil {
			return nil, err
		}
		if ok && n == 0 {
			return nil, badRequest("output %q: a classification has at least one class", m.Outputs[i].Name)
		}
		want.classes = n
		outputs = append(outputs, want)
	}
	return outputs, nil
}

// find returns the index of the tensor a member "name" names, and marks it as seen.
func find(obj map[string]json.RawMessage, specs []TensorSpec, seen []bool, what string) (int, error) {
	name, ok, err := member[string](obj, "name", "a string")
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, badRequest("an %s has no name", what)
	}
	for i, spec := range specs {
		if spec.Name != name {
			continue
		}
		if seen[i] {
			return 0, badRequest("%s %q is given twice", what, name)
		}
		seen[i] = true
		return i, nil
	}
	return 0, badRequest("the model has no %s %q", what, name)
}

func (m *Model) writeResponse(w http.ResponseWriter, req *inferRequest, results []Tensor) error {
	resp := inferResponse{ModelName: m.Name, ModelVersion: modelVersion, ID: req.id}
	var blobs [][]byte
	size := 0
	for _, want := range req.outputs {
		spec, t := m.Outputs[want.index], results[want.index]
		d := datatypes[spec.Datatype]
		var err error
		if want.classes > 0 {
			t, err = m.classify(d, t, m.Labels[spec.Name], want.classes)
			d = datatypes["BYTES"]
		}
		out := responseOutput{Name: spec.Name, Datatype: d.name, Shape: t.Shape}
		if err == nil && want.binary {
			out.Parameters = map[string]int{"binary_data_size": len(t.Data)}
			blobs, size = append(blobs, t.Data), size+len(t.Data)
		} else if err == nil {
			out.Data, err = d.appendJSON(nil, t.Data)
		}
		if err != nil {
			return prefix(err, "output "+strconv.Quote(spec.Name)+": ")
		}
		resp.Outputs = append(resp.Outputs, out)
	}
	head, err := json.Marshal(resp)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if blobs != nil {
		h.Set("Content-Type", "application/octet-stream")
		h.Set(headerLength, strconv.Itoa(len(head)))
	}
	h.Set("Content-Length", strconv.Itoa(len(head)+size))
	w.Write(head)
	for _, b := range blobs {
		w.Write(b)
	}
	return nil
}

// classify returns the top classes of every batch item as "value:index[:label]"
// (triton-classification.md): BYTES of shape [count], behind the batch dimension
// if the model has one. Equal values come in the order of their index.
func (m *Model) classify(d datatype, t Tensor, labels []string, count uint64) (Tensor, error) {
	if d.kind == kindBytes || d.kind == kindBool {
		return Tensor{}, badRequest("%s cannot be classified", d.name)
	}
	items, shape := 1, []uint64{count}
	if m.Batching {
		items, shape = int(t.Shape[0]), []uint64{t.Shape[0], count}
	}
	step := len(t.Data) / items
	classes := step / d.size
	if count > uint64(classes) {
		// "The <count> dimension of the returned tensor will equal the count value"
		return Tensor{}, badRequest("classification of %d classes, but there are %d", count, classes)
	}
	var out []byte
	for ; len(t.Data) > 0; t.Data = t.Data[step:] {
		elem := func(i int) []byte { return t.Data[i*d.size : (i+1)*d.size] }
		keys, order := make([]uint64, classes), make([]int, classes)
		for i := range keys {
			var ok bool
			if keys[i], ok = d.sortKey(elem(i)); !ok {
				return Tensor{}, badRequest("element %d is NaN, which has no place among the classes", i)
			}
			order[i] = i
		}
		sort.Slice(order, func(a, b int) bool {
			i, j := order[a], order[b]
			return keys[i] > keys[j] || keys[i] == keys[j] && i < j
		})
		for _, i := range order[:count] {
			text := append(d.appendText(nil, elem(i)), ':')
			text = strconv.AppendInt(text, int64(i), 10)
			if i < len(labels) {
				text = append(append(text, ':'), labels[i]...)
			}
			out = appendBytes(out, text)
		}
	}
	return Tensor{shape, out}, nil
}

// sortKey maps an element to an unsigned number of the same order.
func (d datatype) sortKey(elem []byte) (key uint64, ok bool) {
	const top = 1 << 63
	switch d.kind {
	case kindUint:
		return uintLE(elem), true
	case kindInt:
		return uint64(d.int(elem)) ^ top, true
	}
	f := d.float(elem)
	b := math.Float64bits(f + 0) // -0 and 0 are equal
	if b&top != 0 {
		return ^b, f == f
	}
	return b | top, f == f
}

// checkJSON refuses what encoding/json would silently repair: text that is not
// UTF-8 and halves of surrogate pairs.
func checkJSON(raw []byte) error {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return badRequest("the request is not a JSON object (binary data behind it need %s)", headerLength)
	}
	hex := func(b []byte) rune {
		u, _ := strconv.ParseUint(string(b), 16, 16)
		return rune(u)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if i++; raw[i] != 'u' {
			continue
		}
		r := hex(raw[i+1 : i+5])
		if i += 4; !utf16.IsSurrogate(r) {
			continue
		}
		if next := raw[i+1:]; !bytes.HasPrefix(next, []byte(`\u`)) ||
			utf16.DecodeRune(r, hex(next[2:6])) == utf8.RuneError {
			return badRequest("a JSON string has half of a surrogate pair")
		}
		i += 6
	}
	return nil
}

// object splits a JSON object. It is no struct for encoding/json, as that takes
// "Inputs" for "inputs", null for a missing member and the last of two.
func object(raw []byte, what string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, badRequest("%s must be a JSON object", what)
	}
	obj := make(map[string]json.RawMessage)
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, badRequest("%s: %v", what, err)
		}
		key := t.(string)
		if _, ok := obj[key]; ok {
			return nil, badRequest("%s has the member %q twice", what, key)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, badRequest("%s: %v", what, err)
		}
		obj[key] = value
	}
	return obj, nil
}

// parameters returns the member "parameters", whose values are "a $string,
// $number, or $boolean". Those not known are ignored.
func parameters(obj map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	raw, ok := obj["parameters"]
	if !ok {
		return nil, nil
	}
	params, err := object(raw, "parameters")
	if err != nil {
		return nil, err
	}
	for name, value := range params {
		if c := value[0]; c == '{' || c == '[' || c == 'n' {
			return nil, badRequest("parameter %q must be a string, a number or a boolean", name)
		}
	}
	return params, nil
}

func member[T any](obj map[string]json.RawMessage, name, want string) (v T, ok bool, err error) {
	raw, ok := obj[name]
	if ok {
		v, err = decode[T](raw, name, want)
	}
	return v, ok, err
}

func decode[T any](raw json.RawMessage, name, want string) (v T, err error) {
	if string(raw) == "null" || json.Unmarshal(raw, &v) != nil {
		return v, badRequest("%s must be %s", name, want)
	}
	return v, nil
}

func prefix(err error, text string) error {
	if he, ok := err.(*httpError); ok {
		return &httpError{he.status, text + he.msg}
	}
	return err
}
