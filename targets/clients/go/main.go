// An adapter of the stubs that protoc makes for Go of Triton's grpc_service.proto.
//
// The stubs carry tensors; tensors.go does what the Preprocess and Postprocess of Triton's example do: bytes to contents
// and back. A caller of theirs may send raw or typed contents.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
	triton "triton/inference"
)

type tensor struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
	Data     []byte  `json:"data"`
	Form     string  `json:"form,omitempty"`
}

type wish struct {
	Name    string `json:"name"`
	Classes int64  `json:"classes"`
}

type inference struct {
	Model   string   `json:"model"`
	Version string   `json:"version"`
	ID      string   `json:"id"`
	Inputs  []tensor `json:"inputs"`
	Outputs []wish   `json:"outputs"`
	Coding  string   `json:"coding"`
	Accepts string   `json:"accepts"`
	Raw     bool     `json:"raw"`
}

type command struct {
	Seq        int         `json:"seq"`
	Command    string      `json:"command"`
	Address    string      `json:"address"`
	TimeoutS   float64     `json:"timeout_s"`
	AtOnce     bool        `json:"at_once"`
	Inferences []inference `json:"inferences"`
}

type object = map[string]interface{}

var clients = map[string]triton.GRPCInferenceServiceClient{}

func main() {
	lines, answers := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked command
		if err := json.Unmarshal(line, &asked); err != nil {
			panic(err)
		}
		answer := object{"seq": asked.Seq}
		if asked.Command == "hello" {
			answer["client"] = object{
				"name": "grpc-go", "version": grpc.Version, "language": "Go", "transports": []string{"grpc"},
			}
		} else {
			answer["results"] = infer(asked)
		}
		if err := answers.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func connect(address string) triton.GRPCInferenceServiceClient {
	if clients[address] == nil {
		connection, err := grpc.Dial(address, grpc.WithInsecure())
		if err != nil {
			panic(err)
		}
		clients[address] = triton.NewGRPCInferenceServiceClient(connection)
	}
	return clients[address]
}

func infer(asked command) []object {
	client, results := connect(asked.Address), make([]object, len(asked.Inferences))
	timeout := time.Duration(asked.TimeoutS * float64(time.Second))
	var underWay sync.WaitGroup
	for i, one := range asked.Inferences {
		underWay.Add(1)
		attempt := func(i int, one inference) {
			defer underWay.Done()
			results[i] = inferOne(client, one, timeout)
		}
		if asked.AtOnce {
			go attempt(i, one)
		} else {
			attempt(i, one)
		}
	}
	underWay.Wait()
	return results
}

func inferOne(client triton.GRPCInferenceServiceClient, one inference, timeout time.Duration) object {
	if one.Raw || one.Accepts != "" || (one.Coding != "" && one.Coding != "gzip") {
		return object{"cannot": "grpc-go has gzip for requests, and no other coding; raw requests are of HTTP"}
	}
	request, cannot := makeRequest(one)
	if cannot != "" {
		return object{"cannot": cannot}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var options []grpc.CallOption
	if one.Coding != "" {
		options = append(options, grpc.UseCompressor(gzip.Name))
	}
	response, err := client.ModelInfer(ctx, request, options...)
	if err != nil {
		said := status.Convert(err)
		return object{"error": object{"message": said.Message(), "status": said.Code().String()}}
	}
	outputs, err := readOutputs(response)
	if err != nil {
		return object{"error": object{"message": err.Error()}}
	}
	result := object{"outputs": outputs}
	if response.Id != "" {
		result["id"] = response.Id
	}
	return result
}

func makeRequest(one inference) (*triton.ModelInferRequest, string) {
	request := &triton.ModelInferRequest{ModelName: one.Model, ModelVersion: one.Version, Id: one.ID}
	for _, given := range one.Inputs {
		input := &triton.ModelInferRequest_InferInputTensor{
			Name: given.Name, Datatype: given.Datatype, Shape: given.Shape,
		}
		if given.Form == "binary" {
			request.RawInputContents = append(request.RawInputContents, given.Data)
		} else if input.Contents = makeContents(given); input.Contents == nil {
			return nil, "typed contents have no field for " + given.Datatype
		}
		request.Inputs = append(request.Inputs, input)
	}
	if n := len(request.RawInputContents); n != 0 && n != len(request.Inputs) {
		return nil, "raw and typed contents exclude each other"
	}
	for _, wished := range one.Outputs {
		output := &triton.ModelInferRequest_InferRequestedOutputTensor{Name: wished.Name}
		if wished.Classes != 0 {
			count := &triton.InferParameter{ParameterChoice: &triton.InferParameter_Int64Param{Int64Param: wished.Classes}}
			output.Parameters = map[string]*triton.InferParameter{"classification": count}
		}
		request.Outputs = append(request.Outputs, output)
	}
	return request, ""
}
