// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// The limits of the server.
const (
	maxBody     = 64 << 10
	maxRequests = 64 // at once; more are told to come again
	maxName     = 253
	answerTime  = 60 * time.Second // for one answer that is no stream
	lineTime    = 10 * time.Second // for a client to take one event, or partSize of another answer
	partSize    = 64 << 10         // bytes
)

// Serve answers on ln until ctx is done, and then closes it. Version is the
// program's.
func Serve(ctx context.Context, ln net.Listener, b Backend, version string) error {
	s := &http.Server{
		Handler:           Handler(b, version),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      answerTime + lineTime, // of what sets none of its own
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// Handler is the control interface over b.
func Handler(b Backend, version string) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /version", serveJSON(func(*http.Request) (any, error) { return Version{version, API}, nil }))
	m.HandleFunc("GET /status", serveJSON(func(r *http.Request) (any, error) { return b.Status(r.Context()) }))
	m.HandleFunc("GET /power/status", serveBMCs(b))
	m.HandleFunc("POST /drain", serveJSON(func(r *http.Request) (any, error) { return nil, b.Drain(r.Context()) }))
	m.HandleFunc("GET /why/{node}", serveJSON(func(r *http.Request) (any, error) {
		n, err := parseNode(r)
		if err != nil {
			return nil, err
		}
		return b.Why(r.Context(), n)
	}))
	m.HandleFunc("GET /look/{node}", serveJSON(func(r *http.Request) (any, error) {
		n, err := parseNode(r)
		if err != nil {
			return nil, err
		}
		return b.Look(r.Context(), n)
	}))
	m.HandleFunc("GET /switch", serveSwitch(b))
	m.HandleFunc("POST /hold/{node}", serveJSON(holdRequest(b.Hold)))
	m.HandleFunc("POST /release/{node}", serveJSON(holdRequest(b.Release)))
	m.HandleFunc("POST /direct/plan", serveDirectPlan(b))
	m.HandleFunc("POST /direct", serveDirect(b))
	m.HandleFunc("POST /console/{node}", serveConsole(b))
	m.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) { serveEvents(w, r, b) })
	m.HandleFunc("GET /snapshot", func(w http.ResponseWriter, r *http.Request) { serveSnapshot(w, r, b) })
	addLender(m, b)
	return limitRequests(m)
}

// limitRequests bounds how many requests are answered at once.
func limitRequests(h http.Handler) http.Handler {
	slots := make(chan struct{}, maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			h.ServeHTTP(w, r)
		default:
			writeError(w, errkind.New(errkind.Refused, "%d requests are being answered already", maxRequests))
		}
	})
}

// serveJSON writes what f returns within answerTime as JSON.
func serveJSON(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		answerJSON(w, func() (any, error) { return f(r.WithContext(ctx)) })
	}
}

// answerJSON writes what f returns as JSON, however long that takes.
func answerJSON(w http.ResponseWriter, f func() (any, error)) {
	v, err := f()
	if err != nil {
		writeError(w, err)
		return
	}
	raw, err := json.Marshal(v)
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, raw)
}

// writeJSON answers with a document. A client that stops reading it is given up.
func writeJSON(w http.ResponseWriter, code int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	out := http.NewResponseController(w)
	_, err := (&deadlineWriter{w: w, out: out}).Write(append(raw, '\n'))
	if err == nil {
		_ = out.Flush() // within the last deadline; a client that is gone needs no answer
	}
}

// failure is an error as it travels.
type failure struct {
	Error  string       `json:"error"`
	Kind   errkind.Kind `json:"kind"`
	Action string       `json:"action,omitempty"`
}

// statusOf maps kinds to codes; the body is what the client reads.
var statusOf = map[errkind.Kind]int{
	errkind.Refused: http.StatusConflict, errkind.Unsupported: http.StatusBadRequest,
	errkind.NotFound: http.StatusNotFound, errkind.Mismatch: http.StatusNotFound,
	errkind.Invalid: http.StatusBadRequest, errkind.Conflict: http.StatusConflict,
	errkind.Timeout:     http.StatusGatewayTimeout,
	errkind.Unreachable: http.StatusBadGateway, errkind.Interrupted: http.StatusServiceUnavailable,
	errkind.Auth: http.StatusForbidden,
}

func writeError(w http.ResponseWriter, err error) {
	f := failure{Error: err.Error(), Kind: errkind.Of(err), Action: errkind.Action(err)}
	code := statusOf[f.Kind]
	if code == 0 {
		code = http.StatusInternalServerError
	}
	raw, _ := json.Marshal(f) // of strings: cannot fail
	writeJSON(w, code, raw)
}

// parseNode reads the node of a request.
func parseNode(r *http.Request) (string, error) {
	n := r.PathValue("node")
	if n == "" || len(n) > maxName {
		return "", errkind.New(errkind.Unsupported, "a node name has 1 to %d bytes, not %d", maxName, len(n))
	}
	return n, nil
}

// holdRequest reads a request about a node.
func holdRequest(f func(context.Context, string, HoldRequest) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		n, err := parseNode(r)
		if err != nil {
			return nil, err
		}
		h, err := readHold(r.Body)
		if err != nil {
			return nil, err
		}
		return nil, f(r.Context(), n, h)
	}
}

// readHold reads a HoldRequest of bounded size.
func readHold(body io.Reader) (h HoldRequest, err error) {
	raw, err := io.ReadAll(io.LimitReader(body, maxBody+1))
	switch {
	case err != nil:
		return h, errkind.New(errkind.Interrupted, "read the request: %w", err)
	case len(raw) > maxBody:
		return h, errkind.New(errkind.Unsupported, "the request is longer than %d bytes", maxBody)
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, errkind.New(errkind.Unsupported, "the request is not readable: %w", err)
	}
	if h.By == "" {
		return h, errkind.New(errkind.Unsupported, "the request does not say who asks")
	}
	return h, nil
}

// serveEvents writes events as JSON lines: those that are kept, and with follow=1
// those to come until the client goes away.
func serveEvents(w http.ResponseWriter, r *http.Request, b Backend) {
	var from uint64
	if q := r.FormValue("from"); q != "" {
		var err error
		if from, err = strconv.ParseUint(q, 10, 64); err != nil {
			writeError(w, errkind.New(errkind.Unsupported, "from=%q is not an event number", q))
			return
		}
	}
	w.Header().Set("Content-Type", jsonLines)
	sub, out, enc := b.Events(from), http.NewResponseController(w), json.NewEncoder(w) // not a line at once: they are many
	_ = out.SetReadDeadline(time.Time{})                                               // nothing more is read
	for {
		e, ok := sub.Ready()
		if !ok {
			_ = out.Flush()
			if r.FormValue("follow") != "1" {
				return
			}
			var err error
			if e, err = sub.Next(r.Context()); err != nil {
				return
			}
		}
		_ = out.SetWriteDeadline(time.Now().Add(lineTime))
		if err := enc.Encode(e); err != nil {
			return
		}
	}
}
