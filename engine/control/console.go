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
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Consoler is a Backend that shares the serial consoles of nodes.
type Consoler interface {
	// Console copies what a node prints to a watcher until ctx ends, and types what the watcher types
	// where the request asks for that.
	Console(ctx context.Context, q ConsoleRequest, w Watcher) error
}

// ConsoleRequest asks for the console of a node.
type ConsoleRequest struct {
	Node string `json:"node"`
	By   string `json:"by"`
	Type bool   `json:"type,omitempty"` // also to type at it

	// Since is when the same person began to type at it while the state had no owner; the record of
	// that is in the state and has no end yet. Zero: it begins now.
	Since time.Time `json:"since,omitzero"`
}

// Watcher is who reads a console, and may type at it. Note may be called while To is written to or Up is
// called; none of them is used after Console has returned.
type Watcher struct {
	To   io.Writer         // gets what the node prints
	Keys <-chan string     // what is typed, one text at a time; nil: nothing is
	Up   func()            // called each time that the console is open; nil: nobody is
	Note func(text string) // called with what becomes of the typing while reading goes on; nil: nobody is
}

// consoleFrame is one line of what the owner sends.
type consoleFrame struct {
	Data  []byte   `json:"data,omitempty"`
	Up    bool     `json:"up,omitempty"`
	Note  string   `json:"note,omitempty"`
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
		q.Since, _ = time.Parse(time.RFC3339Nano, r.FormValue("since")) // none: it begins now
		watcher := Watcher{To: lines, Up: func() { _ = lines.send(consoleFrame{Up: true}) }, Note: func(text string) { _ = lines.send(consoleFrame{Note: text}) }}
		if q.Type {
			keys := make(chan string)
			watcher.Keys = keys
			go func() { // ends with the request's body
				defer cancel()
				readKeys(ctx, r.Body, keys)
			}()
		}
		err = c.Console(ctx, q, watcher)
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

// Console reads a console by the owner, and types what the watcher types; see Consoler. The end of ctx, or of
// the owner, is no error. Nothing is taken from Keys any more once it has returned.
func (c *Client) Console(ctx context.Context, q ConsoleRequest, w Watcher) error {
	v := url.Values{"by": {q.By}}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
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
		typing, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer in.Close() // ends a write that nobody takes
		defer stop()
		wg.Go(func() { sendKeys(typing, in, w.Keys) })
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
		case f.Up && w.Up != nil:
			w.Up()
		case f.Note != "" && w.Note != nil:
			w.Note(f.Note)
		}
		if len(f.Data) == 0 {
			return nil
		}
		_, err := w.To.Write(f.Data)
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
