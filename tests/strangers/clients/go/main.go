// An adapter of the client for oip-conformance: JSON lines over stdin and stdout.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"
)

type tensorLine struct {
	Name     string   `json:"name"`
	Datatype string   `json:"datatype"`
	Shape    []uint64 `json:"shape"`
	Data     []byte   `json:"data"`
	Form     string   `json:"form,omitempty"`
}

type outputLine struct {
	Name    string `json:"name"`
	Form    string `json:"form"`
	Classes int    `json:"classes"`
}

type inferenceLine struct {
	Model      string         `json:"model"`
	Version    string         `json:"version"`
	ID         *string        `json:"id"`
	Parameters map[string]any `json:"parameters"`
	Inputs     []tensorLine   `json:"inputs"`
	Outputs    []outputLine   `json:"outputs"`
	AllOutputs string         `json:"all_outputs"`
	Raw        bool           `json:"raw"`
	Coding     string         `json:"coding"`
	Accepts    string         `json:"accepts"`
}

type commandLine struct {
	Seq        int             `json:"seq"`
	Command    string          `json:"command"`
	Transport  string          `json:"transport"`
	Address    string          `json:"address"`
	Timeout    float64         `json:"timeout_s"`
	AtOnce     bool            `json:"at_once"`
	Inferences []inferenceLine `json:"inferences"`
}

type object = map[string]any

type key struct {
	address string
	timeout float64
}

var clients = map[key]*Client{}

func clientFor(address string, timeout float64) *Client {
	known := clients[key{address, timeout}]
	if known == nil {
		known = NewClient(address, time.Duration(timeout*float64(time.Second)))
		clients[key{address, timeout}] = known
	}
	return known
}

func binaryForm(form string) *bool {
	if form == "" {
		return nil
	}
	binary := form == "binary"
	return &binary
}

func infer(client *Client, asks *inferenceLine) object {
	request := &Request{
		Model: asks.Model, Version: asks.Version, ID: asks.ID, Parameters: asks.Parameters,
		BinaryOutputs: binaryForm(asks.AllOutputs), Raw: asks.Raw, Coding: asks.Coding, Accepts: asks.Accepts,
	}
	for _, one := range asks.Inputs {
		tensor := Tensor{one.Name, one.Datatype, one.Shape, one.Data}
		request.Inputs = append(request.Inputs, Input{tensor, one.Form == "binary"})
	}
	for _, one := range asks.Outputs {
		request.Outputs = append(request.Outputs, Output{one.Name, binaryForm(one.Form), one.Classes})
	}
	response, err := client.Infer(context.Background(), request)
	if err != nil {
		said := object{"message": err.Error()}
		var answered *Error
		if errors.As(err, &answered) {
			said = object{"message": answered.Message, "status": answered.Status}
		}
		return object{"error": said}
	}
	outputs := []tensorLine{}
	for _, one := range response.Outputs {
		outputs = append(outputs, tensorLine{Name: one.Name, Datatype: one.Datatype, Shape: one.Shape, Data: one.Data})
	}
	said := object{"outputs": outputs}
	if response.ID != nil {
		said["id"] = *response.ID
	}
	return said
}

func main() {
	reader := bufio.NewReader(os.Stdin)
	writer := json.NewEncoder(os.Stdout)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return
		}
		var command commandLine
		if err := json.Unmarshal(line, &command); err != nil {
			panic(err)
		}
		if command.Command == "hello" {
			me := object{"name": "outside-go", "version": "1.0", "language": "Go", "transports": []string{"http"}}
			writer.Encode(object{"seq": command.Seq, "client": me})
			continue
		}
		client := clientFor(command.Address, command.Timeout)
		results := make([]object, len(command.Inferences))
		var group sync.WaitGroup
		for i := range command.Inferences {
			if !command.AtOnce {
				results[i] = infer(client, &command.Inferences[i])
				continue
			}
			group.Add(1)
			go func(i int) {
				defer group.Done()
				results[i] = infer(client, &command.Inferences[i])
			}(i)
		}
		group.Wait()
		writer.Encode(object{"seq": command.Seq, "results": results})
	}
}
