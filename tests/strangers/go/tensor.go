package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

type kind int

const (
	kindBool kind = iota
	kindInt
	kindUint
	kindFloat
	kindHalf // 16-bit floating point: binary form only
	kindBytes
)

type datatype struct {
	name string
	kind kind
	size int // bytes of an element, 0 for BYTES
}

// The table of oip-inference_rest.md, Tensor Data Types, and BF16, which only
// the prose there and the gRPC definition name.
var datatypes = map[string]datatype{}

func init() {
	for _, d := range []datatype{
		{"BOOL", kindBool, 1},
		{"UINT8", kindUint, 1}, {"UINT16", kindUint, 2}, {"UINT32", kindUint, 4}, {"UINT64", kindUint, 8},
		{"INT8", kindInt, 1}, {"INT16", kindInt, 2}, {"INT32", kindInt, 4}, {"INT64", kindInt, 8},
		{"FP16", kindHalf, 2}, {"BF16", kindHalf, 2}, {"FP32", kindFloat, 4}, {"FP64", kindFloat, 8},
		{"BYTES", kindBytes, 0},
	} {
		datatypes[d.name] = d
	}
}

// Tensor holds its elements in the binary form of the extension: little-endian,
// row-major, BYTES with their lengths.
type Tensor struct {
	Shape []uint64
	Data  []byte
}

// elements returns the number of elements of a shape, or false if it does not
// fit into 64 bits.
func elements(shape []uint64) (uint64, bool) {
	n, overflow := uint64(1), false
	for _, d := range shape {
		if d == 0 {
			return 0, true
		}
		hi, lo := bits.Mul64(n, d)
		n, overflow = lo, overflow || hi != 0
	}
	return n, !overflow
}

// checkBinary refuses binary data that are not a tensor of this datatype and shape.
func (d datatype) checkBinary(data []byte, shape []uint64) error {
	want, ok := elements(shape)
	got := uint64(0)
	if d.kind == kindBytes {
		items, err := splitBytes(data)
		if err != nil {
			return err
		}
		got = uint64(len(items))
	} else {
		got = uint64(len(data) / d.size)
		ok = ok && len(data)%d.size == 0
	}
	if !ok || got != want {
		return badRequest("%d bytes of %s contradict the shape %v", len(data), d.name, shape)
	}
	if d.kind == kindBool {
		for i, b := range data {
			if b > 1 {
				return badRequest("element %d: byte %d is neither 0 nor 1, so no BOOL", i, b)
			}
		}
	}
	return nil
}

func splitBytes(data []byte) ([][]byte, error) {
	var items [][]byte
	for len(data) > 0 {
		if len(data) < 4 {
			return nil, badRequest("BYTES element %d: %d bytes are too few for its length", len(items), len(data))
		}
		n := uint64(binary.LittleEndian.Uint32(data))
		if data = data[4:]; n > uint64(len(data)) {
			return nil, badRequest("BYTES element %d: %d bytes long, but only %d are left", len(items), n, len(data))
		}
		items = append(items, data[:n])
		data = data[n:]
	}
	return items, nil
}

func appendBytes(dst, item []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(item)))
	return append(dst, item...)
}

// uintLE and appendLE read and write one element of any size.
func uintLE(elem []byte) (u uint64) {
	for i, b := range elem {
		u |= uint64(b) << (8 * i)
	}
	return u
}

func appendLE(dst []byte, u uint64, size int) []byte {
	for i := 0; i < size; i++ {
		dst = append(dst, byte(u>>(8*i)))
	}
	return dst
}

func (d datatype) int(elem []byte) int64 {
	shift := 64 - 8*d.size
	return int64(uintLE(elem)<<shift) >> shift
}

func (d datatype) float(elem []byte) float64 {
	u := uintLE(elem)
	switch d.name {
	case "FP16":
		return float64(fromFP16(uint16(u)))
	case "BF16":
		return float64(fromBF16(uint16(u)))
	case "FP32":
		return float64(math.Float32frombits(uint32(u)))
	}
	return math.Float64frombits(u)
}

// appendText writes one element of fixed size as text, floating point in the
// shortest form that reads back as the same value.
func (d datatype) appendText(dst, elem []byte) []byte {
	switch d.kind {
	case kindBool:
		return strconv.AppendBool(dst, elem[0] == 1)
	case kindInt:
		return strconv.AppendInt(dst, d.int(elem), 10)
	case kindUint:
		return strconv.AppendUint(dst, uintLE(elem), 10)
	}
	f, size := d.float(elem), 32
	if d.size == 8 {
		size = 64
	}
	format := byte('f')
	if f == 0 && math.Signbit(f) {
		return append(dst, "-0.0"...) // many readers take -0 for the integer 0
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, size)
}

// noHalfInJSON: "fp16 and bf16 are problematic to communicate explicitly since
// there is not a standard representation" (oip-inference_rest.md, Tensor Data).
func (d datatype) noHalfInJSON() error {
	if d.kind == kindHalf {
		return badRequest("%s has no JSON form here, use binary data", d.name)
	}
	return nil
}

// appendJSON writes the tensor as the flat form of $tensor_data.
func (d datatype) appendJSON(dst, data []byte) ([]byte, error) {
	if err := d.noHalfInJSON(); err != nil {
		return nil, err
	}
	dst = append(dst, '[')
	if d.kind == kindBytes {
		items, err := splitBytes(data)
		if err != nil {
			return nil, err
		}
		for i, item := range items {
			if !utf8.Valid(item) {
				return nil, badRequest("element %d is not UTF-8 and so cannot be a JSON string, ask for binary data", i)
			}
			text, err := json.Marshal(string(item))
			if err != nil {
				return nil, err
			}
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, text...)
		}
		return append(dst, ']'), nil
	}
	for i := 0; i < len(data); i += d.size {
		elem := data[i : i+d.size]
		if i > 0 {
			dst = append(dst, ',')
		}
		if d.kind == kindFloat {
			if f := d.float(elem); math.IsNaN(f) || math.IsInf(f, 0) {
				return nil, badRequest("element %d is %v and so cannot be a JSON number, ask for binary data", i/d.size, f)
			}
		}
		dst = d.appendText(dst, elem)
	}
	return append(dst, ']'), nil
}

// parseData reads $tensor_data, nested as the shape says or flat, into the
// binary form. raw has to be valid JSON.
func (d datatype) parseData(raw []byte, shape []uint64) ([]byte, error) {
	if err := d.noHalfInJSON(); err != nil {
		return nil, err
	}
	n, ok := elements(shape)
	if !ok {
		return nil, badRequest("the shape %v has too many elements", shape)
	}
	p := &dataParser{raw: raw, datatype: d}
	dims := []uint64{n}
	if len(shape) > 1 && p.peek() == '[' {
		if p.pos++; p.peek() == '[' {
			dims = shape
		}
		p.pos = 0
	}
	if err := p.array(dims); err != nil {
		return nil, err
	}
	return p.out, nil
}

type dataParser struct {
	datatype
	raw []byte
	pos int
	out []byte
}

func (p *dataParser) peek() byte {
	for bytes.IndexByte([]byte(" \t\r\n"), p.raw[p.pos]) >= 0 {
		p.pos++
	}
	return p.raw[p.pos]
}

func (p *dataParser) array(dims []uint64) error {
	if p.peek() != '[' {
		return badRequest("data must be an array, flat or nested as the shape says")
	}
	p.pos++
	n := uint64(0)
	for ; p.peek() != ']'; n++ {
		if n > 0 {
			p.pos++ // the comma
		}
		if n == dims[0] {
			return badRequest("data has more than the %d elements of the shape's dimension", n)
		}
		var err error
		if len(dims) > 1 {
			err = p.array(dims[1:])
		} else {
			err = p.element()
		}
		if err != nil {
			return err
		}
	}
	p.pos++
	if n != dims[0] {
		return badRequest("data has %d elements where the shape has %d", n, dims[0])
	}
	return nil
}

// token returns the bytes of one literal, or of as much as shows that it is none.
func (p *dataParser) token() []byte {
	quoted := p.peek() == '"'
	start := p.pos
	for p.pos++; p.pos < len(p.raw); p.pos++ {
		c := p.raw[p.pos]
		if quoted && c == '\\' {
			p.pos++
		} else if quoted && c == '"' {
			p.pos++
			break
		} else if !quoted && (c == ',' || c == ']' || c <= ' ') {
			break
		}
	}
	return p.raw[start:p.pos]
}

// element takes only what is of the datatype already: "The server can decide to
// coerce each element to the required type or return an error".
func (p *dataParser) element() error {
	tok := p.token()
	text := string(tok)
	var err error
	switch p.kind {
	case kindBool:
		var b bool
		if b = text == "true"; b || text == "false" {
			p.out = append(p.out, bit(b))
			return nil
		}
		err = strconv.ErrSyntax
	case kindInt:
		var v int64
		v, err = strconv.ParseInt(text, 10, 8*p.size)
		p.out = appendLE(p.out, uint64(v), p.size)
	case kindUint:
		var v uint64
		v, err = strconv.ParseUint(text, 10, 8*p.size)
		p.out = appendLE(p.out, v, p.size)
	case kindFloat:
		var v float64
		if v, err = strconv.ParseFloat(text, 8*p.size); p.size == 4 {
			p.out = appendLE(p.out, uint64(math.Float32bits(float32(v))), 4)
		} else {
			p.out = appendLE(p.out, math.Float64bits(v), 8)
		}
	case kindBytes:
		var s string
		if tok[0] != '"' {
			err = strconv.ErrSyntax
		} else if bytes.IndexByte(tok, '\\') < 0 {
			s = text[1 : len(text)-1]
		} else {
			err = json.Unmarshal(tok, &s)
		}
		p.out = appendBytes(p.out, []byte(s))
	}
	if err != nil {
		if len(text) > 40 {
			text = text[:40] + "..."
		}
		return badRequest("data: %s is no element of datatype %s", text, p.name)
	}
	return nil
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func fromFP16(h uint16) float32 {
	sign, exp, man := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exp {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(man)/(1<<24)))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// toFP16 and toBF16 round to nearest, ties to even.
func toFP16(f float32) uint16 {
	b := math.Float32bits(f)
	sign, abs := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case abs > 0x7f800000:
		return sign | 0x7e00 | uint16(abs>>13)&0x3ff
	case abs >= 0x47800000: // 2^16
		return sign | 0x7c00
	case abs < 0x38800000: // 2^-14: subnormal
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(abs))*(1<<24)))
	}
	abs -= 112 << 23
	return sign | uint16((abs+0xfff+abs>>13&1)>>13)
}

func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func toBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if f != f {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
