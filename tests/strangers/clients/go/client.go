// A client of the V2 / Open Inference Protocol over HTTP, with Triton's binary
// tensor data, raw binary request and classification extensions.
package main

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const headerLength = "Inference-Header-Content-Length"

// sizes has the size of an element of every datatype of fixed size.
var sizes = map[string]uint64{
	"BOOL": 1, "UINT8": 1, "INT8": 1, "UINT16": 2, "INT16": 2, "FP16": 2, "BF16": 2,
	"UINT32": 4, "INT32": 4, "FP32": 4, "UINT64": 8, "INT64": 8, "FP64": 8,
}

// Tensor holds its elements in the binary form of the protocol: little-endian,
// row-major; BYTES elements each behind their length.
type Tensor struct {
	Name     string
	Datatype string
	Shape    []uint64
	Data     []byte
}

// Input is a tensor of a request. Binary tells in which form to send it.
type Input struct {
	Tensor
	Binary bool
}

// Output asks for an output. Binary may be nil; Classes 0 means no classification.
type Output struct {
	Name    string
	Binary  *bool
	Classes int
}

// Request is one inference. Nil Outputs means all outputs of the model.
type Request struct {
	Model         string
	Version       string
	ID            *string
	Parameters    map[string]any
	Inputs        []Input
	Outputs       []Output
	BinaryOutputs *bool
	Raw           bool
	Coding        string // compress the request: "gzip" or "deflate"
	Accepts       string // codings that the answer may have
}

// Response is what the server answered.
type Response struct {
	ID      *string
	Outputs []Tensor
}

// Error is an answer of the server that is none of a successful inference.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%d: %s", e.Status, e.Message) }

// Client makes inferences at one server. It is safe for concurrent use.
type Client struct {
	base     string
	timeout  time.Duration
	http     *http.Client
	defaults map[string]any
	buffers  sync.Pool
}

// NewClient returns a client for a base URL such as http://localhost:8000.
func NewClient(base string, timeout time.Duration) *Client {
	transport := &http.Transport{
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true,
	}
	return &Client{
		base:    strings.TrimRight(base, "/"),
		timeout: timeout,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		defaults: map[string]any{},
		buffers:  sync.Pool{New: func() any { return new(bytes.Buffer) }},
	}
}

// Infer makes one inference.
func (c *Client) Infer(ctx context.Context, r *Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, jsonLength, err := c.encode(r)
	if err != nil {
		return nil, err
	}
	if r.Coding != "" {
		if body, err = compress(body, r.Coding); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address(r), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if jsonLength >= 0 {
		request.Header.Set("Content-Type", "application/octet-stream")
		request.Header.Set(headerLength, strconv.Itoa(jsonLength))
	}
	if r.Coding != "" {
		request.Header.Set("Content-Encoding", r.Coding)
	}
	if r.Accepts != "" {
		request.Header.Set("Accept-Encoding", r.Accepts)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	buffer := c.buffers.Get().(*bytes.Buffer)
	buffer.Reset()
	defer c.buffers.Put(buffer)
	if err := readBody(answer, buffer); err != nil {
		return nil, err
	}
	content := buffer.Bytes()
	if answer.StatusCode != http.StatusOK {
		return nil, &Error{answer.StatusCode, errorMessage(content, answer.Status)}
	}
	return decode(r, answer.Header, content)
}

func (c *Client) address(r *Request) string {
	path := c.base + "/v2/models/" + url.PathEscape(r.Model)
	if r.Version != "" {
		path += "/versions/" + url.PathEscape(r.Version)
	}
	return path + "/infer"
}

func compress(body []byte, coding string) ([]byte, error) {
	var out bytes.Buffer
	var writer io.WriteCloser
	switch coding {
	case "gzip":
		writer = gzip.NewWriter(&out)
	case "deflate":
		writer = zlib.NewWriter(&out)
	default:
		return nil, fmt.Errorf("unknown coding %q", coding)
	}
	if _, err := writer.Write(body); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func readBody(answer *http.Response, buffer *bytes.Buffer) error {
	var reader io.Reader = answer.Body
	coding := strings.ToLower(strings.TrimSpace(answer.Header.Get("Content-Encoding")))
	switch coding {
	case "", "identity":
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(answer.Body)
		if err != nil {
			return fmt.Errorf("gzip: %w", err)
		}
		reader = unzipped
	case "deflate":
		unzipped, err := zlib.NewReader(answer.Body)
		if err != nil {
			return fmt.Errorf("deflate: %w", err)
		}
		reader = unzipped
	default:
		return fmt.Errorf("unknown Content-Encoding %q", coding)
	}
	if _, err := buffer.ReadFrom(reader); err != nil {
		return err
	}
	// The end of the transfer may come after the end of the compressed data.
	_, err := io.Copy(io.Discard, answer.Body)
	return err
}

func errorMessage(content []byte, status string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(content, &object) == nil {
		if text, err := asString(object["error"]); err == nil {
			return text
		}
	}
	if len(content) > 0 && len(content) < 1000 && utf8.Valid(content) {
		return string(content)
	}
	return status
}

// ---- requests

type jsonInput struct {
	Name       string          `json:"name"`
	Shape      []uint64        `json:"shape"`
	Datatype   string          `json:"datatype"`
	Parameters map[string]any  `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

type jsonOutput struct {
	Name       string         `json:"name"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

type jsonRequest struct {
	ID         *string        `json:"id,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Inputs     []jsonInput    `json:"inputs"`
	Outputs    []jsonOutput   `json:"outputs,omitempty"`
}

// encode returns the body of a request, and the length of its JSON where the
// request needs the header that gives it, else -1.
func (c *Client) encode(r *Request) ([]byte, int, error) {
	for i := range r.Inputs {
		if err := check(&r.Inputs[i].Tensor); err != nil {
			return nil, 0, fmt.Errorf("input %q: %w", r.Inputs[i].Name, err)
		}
	}
	if r.Raw {
		if len(r.Inputs) != 1 || r.Inputs[0].Datatype == "BYTES" {
			return nil, 0, errors.New("a raw request has one input, and none of BYTES")
		}
		return r.Inputs[0].Data, 0, nil
	}
	object := jsonRequest{ID: r.ID, Inputs: []jsonInput{}}
	parameters := map[string]any{}
	for name, value := range c.defaults {
		parameters[name] = value
	}
	for name, value := range r.Parameters {
		parameters[name] = value
	}
	if r.BinaryOutputs != nil {
		parameters["binary_data_output"] = *r.BinaryOutputs
	}
	object.Parameters = parameters
	anyBinary := false
	var tail bytes.Buffer
	for i := range r.Inputs {
		input := &r.Inputs[i]
		shape := append([]uint64{}, input.Shape...)
		one := jsonInput{Name: input.Name, Shape: shape, Datatype: input.Datatype}
		if input.Binary {
			anyBinary = true
			one.Parameters = map[string]any{"binary_data_size": len(input.Data)}
			tail.Write(input.Data)
		} else {
			data, err := toJSON(&input.Tensor)
			if err != nil {
				return nil, 0, fmt.Errorf("input %q: %w", input.Name, err)
			}
			one.Data = data
		}
		object.Inputs = append(object.Inputs, one)
	}
	for _, output := range r.Outputs {
		one := jsonOutput{Name: output.Name, Parameters: map[string]any{}}
		if output.Binary != nil {
			one.Parameters["binary_data"] = *output.Binary
		}
		if output.Classes > 0 {
			one.Parameters["classification"] = output.Classes
		}
		object.Outputs = append(object.Outputs, one)
	}
	head, err := json.Marshal(&object)
	if err != nil {
		return nil, 0, err
	}
	if !anyBinary {
		return head, -1, nil
	}
	return append(head, tail.Bytes()...), len(head), nil
}

// check tells whether the data of a tensor fit its shape and datatype.
func check(t *Tensor) error {
	count, err := elements(t.Shape)
	if err != nil {
		return err
	}
	if t.Datatype == "BYTES" {
		parts, err := splitBytes(t.Data)
		if err == nil && uint64(len(parts)) != count {
			err = fmt.Errorf("%d elements in shape %v", len(parts), t.Shape)
		}
		return err
	}
	size, known := sizes[t.Datatype]
	if !known {
		return fmt.Errorf("unknown datatype %q", t.Datatype)
	}
	if count > math.MaxInt64/8 || count*size != uint64(len(t.Data)) {
		return fmt.Errorf("%d bytes of %s in shape %v", len(t.Data), t.Datatype, t.Shape)
	}
	if t.Datatype == "BOOL" {
		for _, one := range t.Data {
			if one > 1 {
				return fmt.Errorf("%d is no BOOL", one)
			}
		}
	}
	return nil
}

func elements(shape []uint64) (uint64, error) {
	for _, dimension := range shape {
		if dimension == 0 {
			return 0, nil
		}
	}
	count := uint64(1)
	for _, dimension := range shape {
		if count > math.MaxUint64/dimension {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		count *= dimension
	}
	return count, nil
}

// splitBytes returns the elements of the binary form of a BYTES tensor.
func splitBytes(data []byte) ([][]byte, error) {
	var parts [][]byte
	for at := 0; at < len(data); {
		if len(data)-at < 4 {
			return nil, errors.New("a length of BYTES is cut off")
		}
		length := int64(binary.LittleEndian.Uint32(data[at:]))
		at += 4
		if length > int64(len(data)-at) {
			return nil, errors.New("an element of BYTES is cut off")
		}
		parts = append(parts, data[at:at+int(length)])
		at += int(length)
	}
	return parts, nil
}

func joinBytes(data []byte, part []byte) []byte {
	data = binary.LittleEndian.AppendUint32(data, uint32(len(part)))
	return append(data, part...)
}

// toJSON returns the elements of a tensor as a flat JSON array.
func toJSON(t *Tensor) ([]byte, error) {
	out := []byte{'['}
	if t.Datatype == "BYTES" {
		parts, err := splitBytes(t.Data)
		if err != nil {
			return nil, err
		}
		for i, part := range parts {
			if !utf8.Valid(part) {
				return nil, errors.New("JSON cannot represent bytes that are not UTF-8")
			}
			text, err := json.Marshal(string(part))
			if err != nil {
				return nil, err
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, text...)
		}
		return append(out, ']'), nil
	}
	size := int(sizes[t.Datatype])
	for at := 0; at < len(t.Data); at += size {
		if at > 0 {
			out = append(out, ',')
		}
		one := t.Data[at : at+size]
		switch t.Datatype {
		case "BOOL":
			out = strconv.AppendBool(out, one[0] != 0)
		case "UINT8":
			out = strconv.AppendUint(out, uint64(one[0]), 10)
		case "INT8":
			out = strconv.AppendInt(out, int64(int8(one[0])), 10)
		case "UINT16":
			out = strconv.AppendUint(out, uint64(binary.LittleEndian.Uint16(one)), 10)
		case "INT16":
			out = strconv.AppendInt(out, int64(int16(binary.LittleEndian.Uint16(one))), 10)
		case "UINT32":
			out = strconv.AppendUint(out, uint64(binary.LittleEndian.Uint32(one)), 10)
		case "INT32":
			out = strconv.AppendInt(out, int64(int32(binary.LittleEndian.Uint32(one))), 10)
		case "UINT64":
			out = strconv.AppendUint(out, binary.LittleEndian.Uint64(one), 10)
		case "INT64":
			out = strconv.AppendInt(out, int64(binary.LittleEndian.Uint64(one)), 10)
		default:
			value, bits := 0.0, 64
			switch t.Datatype {
			case "FP16":
				value = fromSmall(binary.LittleEndian.Uint16(one), 5)
			case "BF16":
				value, bits = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(one))<<16)), 32
			case "FP32":
				value, bits = float64(math.Float32frombits(binary.LittleEndian.Uint32(one))), 32
			case "FP64":
				value = math.Float64frombits(binary.LittleEndian.Uint64(one))
			}
			if math.IsNaN(value) || math.IsInf(value, 0) {
				return nil, fmt.Errorf("JSON cannot represent %v", value)
			}
			out = strconv.AppendFloat(out, value, 'g', -1, bits)
		}
	}
	return append(out, ']'), nil
}

// fromSmall returns the value of a float of 16 bits with so many exponent bits.
func fromSmall(word uint16, exponentBits uint) float64 {
	mantissaBits := 15 - exponentBits
	bias := 1<<(exponentBits-1) - 1
	exponent := int(word>>mantissaBits) & (1<<exponentBits - 1)
	mantissa := float64(word & (1<<mantissaBits - 1))
	var value float64
	switch {
	case exponent == 1<<exponentBits-1 && mantissa != 0:
		value = math.NaN()
	case exponent == 1<<exponentBits-1:
		value = math.Inf(1)
	case exponent == 0:
		value = math.Ldexp(mantissa, 1-bias-int(mantissaBits))
	default:
		value = math.Ldexp(mantissa+float64(int(1)<<mantissaBits), exponent-bias-int(mantissaBits))
	}
	if word&0x8000 != 0 {
		value = math.Copysign(value, -1)
	}
	return value
}

// toSmall rounds to the nearest float of 16 bits; false if it is out of range.
func toSmall(value float64, exponentBits uint) (uint16, bool) {
	mantissaBits := 15 - exponentBits
	bias := 1<<(exponentBits-1) - 1
	sign := uint16(0)
	if math.Signbit(value) {
		sign, value = 0x8000, -value
	}
	if value == 0 {
		return sign, true
	}
	_, exponent := math.Frexp(value)
	exponent-- // value = 1.x * 2^exponent
	if exponent < 1-bias {
		exponent = 1 - bias
	}
	steps := math.RoundToEven(math.Ldexp(value, int(mantissaBits)-exponent))
	// A carry goes on into the exponent, and from subnormal to normal.
	word := uint64(exponent+bias-1)<<mantissaBits + uint64(steps)
	if word >= (1<<exponentBits-1)<<mantissaBits {
		return 0, false
	}
	return sign | uint16(word), true
}

// ---- answers

func asString(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", errors.New("no string")
	}
	if loneSurrogate(raw) {
		return "", errors.New("a lone surrogate in a string")
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}

// loneSurrogate finds escapes that encoding/json would replace silently.
func loneSurrogate(raw []byte) bool {
	unit := func(at int) uint64 {
		if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
			return 0
		}
		value, _ := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16)
		return value
	}
	for at := 0; at < len(raw); at++ {
		if raw[at] != '\\' {
			continue
		}
		switch one := unit(at); {
		case one >= 0xD800 && one < 0xDC00:
			if next := unit(at + 6); next < 0xDC00 || next > 0xDFFF {
				return true
			}
			at += 11
		case one >= 0xDC00 && one <= 0xDFFF:
			return true
		default:
			at++
		}
	}
	return false
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// integer reads a JSON number that is an integer in any spelling.
func integer(text string) (*big.Int, error) {
	if value, err := strconv.ParseInt(text, 10, 64); err == nil {
		return big.NewInt(value), nil
	}
	approximate, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(approximate) > 1<<65 {
		return nil, fmt.Errorf("%s is out of range", text)
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		if exponent, err := strconv.Atoi(text[at+1:]); err != nil || exponent < -400 || exponent > 400 {
			return nil, fmt.Errorf("%s is out of range", text)
		}
	}
	value, ok := new(big.Rat).SetString(text)
	if !ok || !value.IsInt() {
		return nil, fmt.Errorf("%s is no integer", text)
	}
	return value.Num(), nil
}

func decode(r *Request, header http.Header, content []byte) (*Response, error) {
	head, tail, framed := content, []byte(nil), false
	if values := header.Values(headerLength); len(values) > 0 {
		length, err := strconv.ParseUint(strings.TrimSpace(values[0]), 10, 63)
		if err != nil || len(values) > 1 {
			return nil, fmt.Errorf("%s: %q", headerLength, values)
		}
		if length > uint64(len(content)) {
			return nil, fmt.Errorf("%s is %d, the body has %d bytes", headerLength, length, len(content))
		}
		head, tail, framed = content[:length], content[length:], true
	}
	if !utf8.Valid(head) {
		return nil, errors.New("the JSON is not UTF-8")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(head, &object); err != nil {
		return nil, fmt.Errorf("the JSON of the answer: %w", err)
	}
	response := &Response{}
	if !absent(object["id"]) {
		id, err := asString(object["id"])
		if err != nil {
			return nil, fmt.Errorf("id: %w", err)
		}
		if r.ID != nil && !r.Raw && id != *r.ID {
			return nil, fmt.Errorf("the answer has id %q instead of %q", id, *r.ID)
		}
		response.ID = &id
	}
	if absent(object["outputs"]) {
		if text, err := asString(object["error"]); err == nil {
			return nil, errors.New(text)
		}
		return nil, errors.New("the answer has no outputs")
	}
	var outputs []map[string]json.RawMessage
	if err := json.Unmarshal(object["outputs"], &outputs); err != nil {
		return nil, fmt.Errorf("outputs: %w", err)
	}
	for _, one := range outputs {
		tensor, rest, err := decodeOutput(one, tail, framed)
		if err != nil {
			return nil, err
		}
		tail = rest
		response.Outputs = append(response.Outputs, *tensor)
	}
	if len(tail) > 0 {
		return nil, fmt.Errorf("%d bytes follow the binary data", len(tail))
	}
	return response, nil
}

// decodeOutput reads one output and returns what is left of the binary data.
func decodeOutput(object map[string]json.RawMessage, tail []byte, framed bool) (*Tensor, []byte, error) {
	tensor := &Tensor{Shape: []uint64{}}
	var err error
	if tensor.Name, err = asString(object["name"]); err != nil {
		return nil, nil, fmt.Errorf("name of an output: %w", err)
	}
	fail := func(err error) (*Tensor, []byte, error) {
		return nil, nil, fmt.Errorf("output %q: %w", tensor.Name, err)
	}
	if tensor.Datatype, err = asString(object["datatype"]); err != nil {
		return fail(fmt.Errorf("datatype: %w", err))
	}
	if tensor.Datatype == "STRING" { // so the examples of the classification extension
		tensor.Datatype = "BYTES"
	}
	var shape []json.RawMessage
	if err := json.Unmarshal(object["shape"], &shape); err != nil || shape == nil {
		return fail(errors.New("no shape"))
	}
	for _, raw := range shape {
		dimension, err := integer(string(raw))
		if err != nil || !dimension.IsUint64() {
			return fail(fmt.Errorf("dimension %s", raw))
		}
		tensor.Shape = append(tensor.Shape, dimension.Uint64())
	}
	size := json.RawMessage(nil)
	if !absent(object["parameters"]) {
		var parameters map[string]json.RawMessage
		if err := json.Unmarshal(object["parameters"], &parameters); err != nil {
			return fail(fmt.Errorf("parameters: %w", err))
		}
		size = parameters["binary_data_size"]
	}
	if !absent(size) {
		length, err := integer(string(size))
		if err != nil || !length.IsInt64() || length.Sign() < 0 {
			return fail(fmt.Errorf("binary_data_size %s", size))
		}
		if length.Sign() > 0 && !framed {
			return fail(fmt.Errorf("binary data without %s", headerLength))
		}
		if length.Int64() > int64(len(tail)) {
			return fail(fmt.Errorf("%d of %d bytes are there", len(tail), length))
		}
		if data := object["data"]; !absent(data) && string(bytes.Join(bytes.Fields(data), nil)) != "[]" {
			return fail(errors.New("both data and binary_data_size"))
		}
		end := length.Int64()
		tensor.Data = append([]byte{}, tail[:end]...)
		tail = tail[end:]
	} else if tensor.Data, err = fromJSON(tensor.Datatype, tensor.Shape, object["data"]); err != nil {
		return fail(err)
	}
	if err := check(tensor); err != nil {
		return fail(err)
	}
	return tensor, tail, nil
}

// fromJSON reads a JSON array, flat or nested as the shape is.
func fromJSON(datatype string, shape []uint64, raw json.RawMessage) ([]byte, error) {
	if absent(raw) || raw[0] != '[' {
		return nil, errors.New("no array of data")
	}
	if datatype == "BYTES" && loneSurrogate(raw) {
		return nil, errors.New("a lone surrogate in a string")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	data, counts, flat, nested := []byte{}, []uint64{}, true, true
	rank := 0
	for decoder.More() || len(counts) > 0 {
		token, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		switch token {
		case json.Delim('['):
			if depth := len(counts); depth > 0 {
				counts[depth-1]++
				flat = false
			}
			counts = append(counts, 0)
			if len(counts) > rank {
				rank = len(counts)
			}
			continue
		case json.Delim(']'):
			depth := len(counts)
			if depth > len(shape) || counts[depth-1] != shape[depth-1] {
				nested = false
			}
			counts = counts[:depth-1]
			continue
		}
		counts[len(counts)-1]++
		if len(counts) != len(shape) {
			nested = false
		}
		if data, err = appendElement(data, datatype, token); err != nil {
			return nil, err
		}
	}
	if !flat && !nested {
		return nil, fmt.Errorf("the nesting of data is not that of shape %v", shape)
	}
	return data, nil
}

func appendElement(data []byte, datatype string, token json.Token) ([]byte, error) {
	switch datatype {
	case "BYTES":
		if text, ok := token.(string); ok {
			return joinBytes(data, []byte(text)), nil
		}
		return nil, fmt.Errorf("%v is no string", token)
	case "BOOL":
		if truth, ok := token.(bool); ok {
			if truth {
				return append(data, 1), nil
			}
			return append(data, 0), nil
		}
		return nil, fmt.Errorf("%v is no boolean", token)
	}
	number, ok := token.(json.Number)
	if !ok {
		return nil, fmt.Errorf("%v is no number", token)
	}
	text := number.String()
	switch datatype {
	case "FP64":
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		return binary.LittleEndian.AppendUint64(data, math.Float64bits(value)), nil
	case "FP32":
		value, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return nil, err
		}
		return binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(value))), nil
	case "FP16", "BF16":
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, err
		}
		exponentBits := uint(5)
		if datatype == "BF16" {
			exponentBits = 8
		}
		word, ok := toSmall(value, exponentBits)
		if !ok {
			return nil, fmt.Errorf("%s is out of range", text)
		}
		return binary.LittleEndian.AppendUint16(data, word), nil
	}
	size, known := sizes[datatype]
	if !known {
		return nil, fmt.Errorf("unknown datatype %q", datatype)
	}
	value, err := integer(text)
	if err != nil {
		return nil, err
	}
	var low, high *big.Int
	one := big.NewInt(1)
	if datatype[0] == 'U' {
		low, high = new(big.Int), new(big.Int).Lsh(one, uint(size*8))
	} else {
		high = new(big.Int).Lsh(one, uint(size*8-1))
		low = new(big.Int).Neg(high)
	}
	if value.Cmp(low) < 0 || value.Cmp(high) >= 0 {
		return nil, fmt.Errorf("%s is no %s", text, datatype)
	}
	word := value.Uint64()
	if value.Sign() < 0 {
		word = uint64(value.Int64())
	}
	for ; size > 0; size-- {
		data = append(data, byte(word))
		word >>= 8
	}
	return data, nil
}
