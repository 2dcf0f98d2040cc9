package main

import (
	"bytes"
	"encoding/binary"
	"fmt"

	triton "triton/inference"
)

var sizes = map[string]int{
	"BOOL": 1, "UINT8": 1, "UINT16": 2, "UINT32": 4, "UINT64": 8, "INT8": 1, "INT16": 2, "INT32": 4, "INT64": 8,
	"FP16": 2, "BF16": 2, "FP32": 4, "FP64": 8,
}

// makeContents returns the typed contents of an input; nil where there is no field for its datatype.
func makeContents(given tensor) *triton.InferTensorContents {
	made, data := &triton.InferTensorContents{}, given.Data
	if given.Datatype == "BYTES" {
		made.BytesContents = splitBytes(data)
		return made
	}
	for size := sizes[given.Datatype]; len(data) > 0; data = data[size:] {
		switch given.Datatype {
		case "BOOL":
			made.BoolContents = append(made.BoolContents, data[0] != 0)
		case "UINT8":
			made.UintContents = append(made.UintContents, uint32(data[0]))
		case "UINT16":
			made.UintContents = append(made.UintContents, uint32(binary.LittleEndian.Uint16(data)))
		case "UINT32":
			made.UintContents = append(made.UintContents, binary.LittleEndian.Uint32(data))
		case "UINT64":
			made.Uint64Contents = append(made.Uint64Contents, binary.LittleEndian.Uint64(data))
		case "INT8":
			made.IntContents = append(made.IntContents, int32(int8(data[0])))
		case "INT16":
			made.IntContents = append(made.IntContents, int32(int16(binary.LittleEndian.Uint16(data))))
		case "INT32":
			made.IntContents = append(made.IntContents, int32(binary.LittleEndian.Uint32(data)))
		case "INT64":
			made.Int64Contents = append(made.Int64Contents, int64(binary.LittleEndian.Uint64(data)))
		case "FP32":
			made.Fp32Contents = append(made.Fp32Contents, readFloat32(data))
		case "FP64":
			made.Fp64Contents = append(made.Fp64Contents, readFloat64(data))
		default:
			return nil
		}
	}
	if given.Datatype == "FP16" || given.Datatype == "BF16" {
		return nil
	}
	return made
}

func readFloat32(data []byte) (number float32) {
	binary.Read(bytes.NewReader(data), binary.LittleEndian, &number)
	return
}

func readFloat64(data []byte) (number float64) {
	binary.Read(bytes.NewReader(data), binary.LittleEndian, &number)
	return
}

func splitBytes(data []byte) (elements [][]byte) {
	for len(data) > 0 {
		end := 4 + binary.LittleEndian.Uint32(data)
		elements, data = append(elements, data[4:end]), data[end:]
	}
	return
}

// readOutputs returns what an answer gives its caller: raw contents where there are any, otherwise typed ones.
func readOutputs(response *triton.ModelInferResponse) ([]tensor, error) {
	outputs := []tensor{}
	raw := response.RawOutputContents
	if len(raw) != 0 && len(raw) != len(response.Outputs) {
		return nil, fmt.Errorf("%d raw contents for %d outputs", len(raw), len(response.Outputs))
	}
	for i, said := range response.Outputs {
		output := tensor{Name: said.Name, Datatype: said.Datatype, Shape: said.Shape}
		if output.Shape == nil {
			output.Shape = []int64{}
		}
		if len(raw) != 0 {
			output.Data = raw[i]
		} else if data, err := joinContents(said.Datatype, said.Contents); err != nil {
			return nil, err
		} else {
			output.Data = data
		}
		if err := expectLength(output); err != nil {
			return nil, err
		}
		if output.Data == nil {
			output.Data = []byte{}
		}
		outputs = append(outputs, output)
	}
	return outputs, nil
}

// joinContents returns the binary form of typed contents. Numbers of less than 32 bits come in fields of 32.
func joinContents(datatype string, contents *triton.InferTensorContents) ([]byte, error) {
	joined := &bytes.Buffer{}
	write := func(number interface{}) { binary.Write(joined, binary.LittleEndian, number) }
	switch datatype {
	case "BOOL":
		write(contents.GetBoolContents())
	case "UINT8", "UINT16", "UINT32":
		for _, number := range contents.GetUintContents() {
			if bits := uint(8 * sizes[datatype]); bits < 32 && number>>bits != 0 {
				return nil, fmt.Errorf("%d is no %s", number, datatype)
			}
			joined.Write(cut(uint32(number), sizes[datatype]))
		}
	case "INT8", "INT16", "INT32":
		for _, number := range contents.GetIntContents() {
			if shift := uint(32 - 8*sizes[datatype]); number<<shift>>shift != number {
				return nil, fmt.Errorf("%d is no %s", number, datatype)
			}
			joined.Write(cut(uint32(number), sizes[datatype]))
		}
	case "UINT64":
		write(contents.GetUint64Contents())
	case "INT64":
		write(contents.GetInt64Contents())
	case "FP32":
		write(contents.GetFp32Contents())
	case "FP64":
		write(contents.GetFp64Contents())
	case "BYTES":
		for _, element := range contents.GetBytesContents() {
			write(uint32(len(element)))
			joined.Write(element)
		}
	default:
		return nil, fmt.Errorf("typed contents have no field for %s", datatype)
	}
	return joined.Bytes(), nil
}

func cut(number uint32, size int) []byte {
	whole := make([]byte, 4)
	binary.LittleEndian.PutUint32(whole, number)
	return whole[:size]
}

// expectLength says what is wrong where a shape and its elements do not go together.
func expectLength(output tensor) error {
	wanted, found := int64(1), int64(0)
	for _, side := range output.Shape {
		if side < 0 || (wanted != 0 && side > 1<<40/wanted) {
			return fmt.Errorf("the shape %v", output.Shape)
		}
		wanted *= side
	}
	if size, fixed := sizes[output.Datatype]; fixed {
		found, wanted = int64(len(output.Data)), wanted*int64(size)
	} else {
		for data := output.Data; len(data) > 0; found++ {
			if len(data) < 4 || uint64(len(data)-4) < uint64(binary.LittleEndian.Uint32(data)) {
				return fmt.Errorf("%d bytes end inside an element", len(output.Data))
			}
			data = data[4+binary.LittleEndian.Uint32(data):]
		}
	}
	if wanted != found {
		return fmt.Errorf("%s %v has %d elements or bytes, not %d", output.Datatype, output.Shape, found, wanted)
	}
	return nil
}
