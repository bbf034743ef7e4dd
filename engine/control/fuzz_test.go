// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
)

// copied is a backend with a state to copy, whose copy fails after a while when bad.
type copied struct {
	backend
	bad bool
}

func (c copied) Snapshot(_ context.Context, w io.Writer) error {
	_, err := io.WriteString(w, strings.Repeat("page", 4096))
	if c.bad {
		return errors.Join(err, errors.New("the disk is gone"))
	}
	return err
}

// FuzzHandler: whatever arrives on the socket is answered with a bounded answer, in
// bounded time, that is JSON unless it is a stream.
func FuzzHandler(f *testing.F) {
	for _, path := range []string{"GET /version", "GET /status", "GET /why/n9", "GET /power/status", "GET /power/status?stream=1&node=n1", "GET /power/status?stream=1&node=n9", "POST /drain", "GET /events?from=1&follow=1",
		"GET /events?from=-1", "GET /snapshot", "DELETE /status", "GET /why/%00%ff", "GET //", "POST /hold/../../x", "OPTIONS *"} {
		f.Add([]byte(path + " HTTP/1.1\r\nHost: x\r\n\r\n"))
	}
	f.Add([]byte("POST /hold/n1 HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n{\"by\":\"ops\"}"))
	f.Add([]byte("POST /release/n9 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"by\"\r\n0\r\n\r\n"))
	bus := event.NewBus(10)
	bus.Emit(event.Event{Type: event.Note, Text: "x"})
	bus.Close()
	h := control.Handler(copied{backend: backend{bus}}, "1.2.3")
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(ctx))
		if ctx.Err() != nil {
			t.Errorf("%s %s took 20 seconds", r.Method, r.URL)
		}
		body := w.Body.Bytes()
		if len(body) > 1<<20 {
			t.Errorf("%s %s: %d bytes", r.Method, r.URL, len(body))
		}
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(body) {
			t.Errorf("%s %s: %q", r.Method, r.URL, body)
		}
	})
}

// FuzzSocket: whatever bytes arrive on the socket, the server ends the connection or
// answers, and goes on to serve the next client.
func FuzzSocket(f *testing.F) {
	f.Add([]byte("GET /version HTTP/1.1\r\nHost: x\r\n\r\n"))
	f.Add([]byte("GET /version HTTP/9.9\r\n"))
	f.Add([]byte("\x16\x03\x01\x00\xa5\x01\x00\x00"))
	f.Add([]byte(strings.Repeat("A", 20000)))
	f.Add([]byte("POST /hold/n1 HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\nExpect: 100-continue\r\n\r\n"))
	bus := event.NewBus(10)
	bus.Close()
	ln, err := net.Listen("unix", f.TempDir()+"/control.sock")
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, ln, copied{backend{bus}, true}, "1.2.3") }()
	f.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := speak(ln.Addr().String(), raw); err != nil {
			t.Error(err)
		}
		if err := speak(ln.Addr().String(), []byte("GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
			t.Errorf("the next client: %v", err)
		}
	})
}

// speak sends bytes, closes its side, and reads what comes until the end.
func speak(path string, raw []byte) error {
	c, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	if _, err := c.Write(raw); err != nil {
		return nil // it was closed before all was sent
	}
	_ = c.(*net.UnixConn).CloseWrite()
	got, err := io.ReadAll(io.LimitReader(c, 1<<22))
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		return fmt.Errorf("no end after %d bytes", len(got))
	}
	if len(got) == 1<<22 {
		return errors.New("an answer without end")
	}
	return nil
}

// TestSnapshot: a copy comes whole, and one that fails midway is an error.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]bool{"whole": false, "cut off": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o, err := control.AcquireFolder(dir, "apply", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			ln, err := o.Listen()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- control.Serve(ctx, ln, copied{backend{event.NewBus(1)}, bad}, "1.2.3") }()
			var b bytes.Buffer
			err = control.NewClient(dir).Snapshot(t.Context(), &b)
			if bad != (err != nil) || !bad && b.Len() != 4*4096 {
				t.Errorf("%d bytes: %v", b.Len(), err)
			}
			cancel()
			if err := errors.Join(<-served, o.Release()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSnapshotOfNothing: an owner without a state file says so.
func TestSnapshotOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir)
	if err := control.NewClient(dir).Snapshot(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "no state file") {
		t.Error(err)
	}
}
