// Command server is a small model server for the V2 / Open Inference Protocol
// over HTTP, with the binary tensor data and the classification extension.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	serverName    = "go-open-inference"
	serverVersion = "1.0.0"
	modelVersion  = "1" // every model has this one version
	platform      = "go_builtin"
	maxBody       = 64 << 20

	headerLength = "Inference-Header-Content-Length"
)

func main() {
	port := flag.Int("port", 8000, "port to bind on 127.0.0.1, 0 for a free one")
	flag.Parse()
	if err := run(*port); err != nil {
		log.Fatal(err)
	}
}

func run(port int) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: newServer(models), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	fmt.Printf("http://%s\n", ln.Addr())

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if srv.Shutdown(grace) != nil {
		return srv.Close()
	}
	return nil
}

// httpError is an error with the status it is answered with.
type httpError struct {
	status int
	msg    string
}

func (e *httpError) Error() string { return e.msg }

func errorf(status int, format string, args ...any) error {
	return &httpError{status, fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) error {
	return errorf(http.StatusBadRequest, format, args...)
}

// server routes by itself: http.ServeMux would answer unclean paths with
// redirects, and its errors are not the protocol's JSON.
type server struct {
	models map[string]*Model
}

func newServer(table []Model) *server {
	s := &server{models: make(map[string]*Model, len(table))}
	for i := range table {
		s.models[table[i].Name] = &table[i]
	}
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := s.route(w, r)
	if err == nil {
		return
	}
	status := http.StatusInternalServerError
	var he *httpError
	if errors.As(err, &he) {
		status = he.status
	}
	writeJSON(w, status, map[string]string{"error": err.Error()})
}

// route answers the request; if it returns an error nothing has been written.
func (s *server) route(w http.ResponseWriter, r *http.Request) error {
	// Split before unescaping, so that %2F stays inside a model's name.
	path := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	for i, seg := range path {
		var err error
		if path[i], err = url.PathUnescape(seg); err != nil {
			return badRequest("malformed path: %v", err)
		}
	}
	unknown := errorf(http.StatusNotFound, "unknown path %q", r.URL.Path)
	if path[0] != "v2" {
		return unknown
	}
	path = path[1:]
	switch {
	// oip-inference_rest.md has "v2", open_inference_rest.yaml "/v2/".
	case len(path) == 0, len(path) == 1 && path[0] == "":
		return get(w, r, map[string]any{
			"name":       serverName,
			"version":    serverVersion,
			"extensions": []string{"binary_tensor_data", "classification"},
		})
	case len(path) == 2 && path[0] == "health" && (path[1] == "live" || path[1] == "ready"):
		// $ready_server_response too has the member "live".
		return get(w, r, map[string]bool{"live": true})
	case len(path) < 2 || path[0] != "models":
		return unknown
	}

	m, ok := s.models[path[1]]
	if !ok {
		return errorf(http.StatusNotFound, "unknown model %q", path[1])
	}
	path = path[2:]
	if len(path) >= 2 && path[0] == "versions" {
		if path[1] != modelVersion {
			return errorf(http.StatusNotFound, "model %q has no version %q", m.Name, path[1])
		}
		path = path[2:]
	}
	switch {
	case len(path) == 0:
		return get(w, r, m.metadata())
	case len(path) == 1 && path[0] == "ready":
		return get(w, r, map[string]any{"name": m.Name, "ready": true})
	case len(path) == 1 && path[0] == "infer":
		return m.serveInfer(w, r)
	}
	return unknown
}

func get(w http.ResponseWriter, r *http.Request, v any) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return notAllowed(w, r, "GET, HEAD")
	}
	writeJSON(w, http.StatusOK, v)
	return nil
}

func notAllowed(w http.ResponseWriter, r *http.Request, allow string) error {
	w.Header().Set("Allow", allow)
	return errorf(http.StatusMethodNotAllowed, "method %s is not allowed here, only %s", r.Method, allow)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // v is always one of our own maps of strings and numbers
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		w.Header().Set("Accept-Encoding", "identity")
		return nil, errorf(http.StatusUnsupportedMediaType, "content encoding %q is not supported", enc)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, errorf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, badRequest("cannot read the body: %v", err)
	}
	return body, nil
}
