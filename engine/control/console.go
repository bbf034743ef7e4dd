// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"sync"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Consoler is a Backend that shares the serial consoles of nodes.
type Consoler interface {
	// Console copies what a node prints to w until ctx ends, and types what comes from keys, nil:
	// nothing. up is called each time that the console is open.
	Console(ctx context.Context, q ConsoleRequest, w io.Writer, keys <-chan string, up func()) error
}

// ConsoleRequest asks for the console of a node.
type ConsoleRequest struct {
	Node string `json:"node"`
	By   string `json:"by"`
	Type bool   `json:"type,omitempty"` // also to type at it
}

// consoleFrame is one line of what the owner sends.
type consoleFrame struct {
	Data  []byte   `json:"data,omitempty"`
	Up    bool     `json:"up,omitempty"`
	Error *failure `json:"error,omitempty"`
}

// consoleInput is one line of what the client sends.
type consoleInput struct {
	Keys []byte `json:"keys"`
}

// serveConsole streams a console as JSON lines, and takes keys as JSON lines at the same time.
func serveConsole(b Backend) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, ok := b.(Consoler)
		n, err := parseNode(r)
		switch {
		case !ok:
			writeError(w, errkind.New(errkind.Unsupported, "the process that owns the state shares no consoles").Do("Wait until it ends."))
			return
		case err != nil:
			writeError(w, err)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		lines := &consoleWriter{lines: newLineWriter(w)}
		_ = lines.lines.out.EnableFullDuplex() // HTTP/1.1 of this server can
		if lines.send(consoleFrame{}) != nil { // so that the client knows that it may send
			return
		}
		q := ConsoleRequest{Node: n, By: r.FormValue("by"), Type: r.FormValue("type") == "1"}
		var keys chan string
		if q.Type {
			keys = make(chan string)
			go func() { // ends with the request's body
				defer cancel()
				readKeys(ctx, r.Body, keys)
			}()
		}
		err = c.Console(ctx, q, lines, keys, func() { _ = lines.send(consoleFrame{Up: true}) })
		if err != nil {
			_ = lines.send(consoleFrame{Error: &failure{Error: err.Error(), Kind: errkind.Of(err), Action: errkind.Action(err)}})
		}
	}
}

// readKeys passes on what the client types, until it ends.
func readKeys(ctx context.Context, body io.Reader, keys chan<- string) {
	d := json.NewDecoder(body)
	for {
		var in consoleInput
		if d.Decode(&in) != nil {
			return
		}
		select {
		case keys <- string(in.Keys):
		case <-ctx.Done():
			return
		}
	}
}

// consoleWriter sends frames.
type consoleWriter struct {
	mu    sync.Mutex // one frame at a time: what is printed, and that it is up
	lines *lineWriter
}

// Write implements io.Writer.
func (c *consoleWriter) Write(b []byte) (int, error) { return len(b), c.send(consoleFrame{Data: b}) }

func (c *consoleWriter) send(f consoleFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines.write(f)
}

// Console reads a console by the owner, and types what comes from keys; see Consoler. The end of ctx, or of
// the owner, is no error.
func (c *Client) Console(ctx context.Context, q ConsoleRequest, w io.Writer, keys <-chan string, up func()) error {
	v := url.Values{"by": {q.By}}
	body, in := io.Pipe()
	defer in.Close()
	if q.Type {
		v.Set("type", "1")
	}
	path := "http://ironrail/console/" + url.PathEscape(q.Node) + "?" + v.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path, body)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	if q.Type {
		go sendKeys(ctx, in, keys)
	} else {
		_ = in.Close()
	}
	resp, err := c.answer(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = readLines(ctx, resp.Body, math.MaxInt64, func(f consoleFrame) error {
		switch {
		case f.Error != nil:
			return &errkind.Error{Kind: f.Error.Kind, Err: errors.New(f.Error.Error), Action: f.Error.Action}
		case f.Up && up != nil:
			up()
		}
		if len(f.Data) == 0 {
			return nil
		}
		_, err := w.Write(f.Data)
		return err
	})
	if err != nil && err == context.Cause(ctx) {
		return nil
	}
	return err
}

// sendKeys writes keys as JSON lines until ctx ends.
func sendKeys(ctx context.Context, in *io.PipeWriter, keys <-chan string) {
	defer in.Close()
	enc := json.NewEncoder(in)
	for {
		select {
		case k := <-keys:
			if enc.Encode(consoleInput{[]byte(k)}) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
