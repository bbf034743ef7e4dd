// SPDX-License-Identifier: Apache-2.0

package qmp

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// fake answers each line of a QMP client with the lines that answer returns.
func fake(t *testing.T, greeting string, answer func(command, id string) []string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "q")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Write([]byte(greeting + "\n"))
		in := bufio.NewScanner(conn)
		for in.Scan() {
			var cmd struct{ Execute, ID string }
			if json.Unmarshal(in.Bytes(), &cmd) != nil {
				return
			}
			lines := answer(cmd.Execute, cmd.ID)
			if lines == nil {
				return
			}
			for _, line := range lines {
				_, _ = conn.Write([]byte(line + "\n"))
			}
		}
	}()
	return path
}

const hello = `{"QMP":{"version":{},"capabilities":[]}}`

func ok(id, value string) string { return `{"return":` + value + `,"id":"` + id + `"}` }

func TestExecute(t *testing.T) {
	t.Parallel()
	path := fake(t, hello, func(command, id string) []string {
		switch command {
		case "qmp_capabilities":
			return []string{ok(id, "{}")}
		case "query-status":
			return []string{`{"event":"RESET","data":{"guest":true}}`, ok(id, `{"status":"running"}`)}
		case "qom-set":
			return []string{`{"error":{"class":"GenericError","desc":"The bootindex 2 has already been used"},"id":"` + id + `"}`}
		case "stop":
			return []string{} // no reply
		}
		return nil // hang up
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	events := make(chan Event, 4)
	c, err := Dial(ctx, path, func(e Event) { events <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var status struct{ Status string }
	if err := c.Execute(ctx, "query-status", nil, &status); err != nil || status.Status != "running" {
		t.Errorf("query-status: %q, %v", status.Status, err)
	}
	if e := <-events; e.Name != "RESET" || string(e.Data) != `{"guest":true}` {
		t.Errorf("event %+v", e)
	}
	err = c.Execute(ctx, "qom-set", map[string]int{"value": 2}, nil)
	if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "already been used") {
		t.Errorf("refusal: %v", err)
	}
	short, cancelShort := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancelShort()
	if err := c.Execute(short, "stop", nil, nil); errkind.Of(err) != errkind.Timeout {
		t.Errorf("silence: %v", err)
	}
	if err := c.Execute(ctx, "quit", nil, nil); errkind.Of(err) != errkind.Unreachable {
		t.Errorf("hang-up: %v", err)
	}
	if err := c.Execute(ctx, "query-status", nil, nil); err == nil || c.Err() == nil {
		t.Error("a dead connection took a command")
	}
}

func TestDialErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, greeting string }{
		{"not a greeting", `{"return":{}}`},
		{"not JSON", "SSH-2.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := fake(t, tt.greeting, func(string, string) []string { return nil })
			if c, err := Dial(t.Context(), path, nil); err == nil {
				_ = c.Close()
				t.Error("accepted")
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, filepath.Join(t.TempDir(), "none"), nil); errkind.Of(err) != errkind.Unreachable {
		t.Errorf("no socket: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte(`{"event":"SHUTDOWN","data":{"guest":true,"reason":"guest-shutdown"}}`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = decodeMessage(b) })
}
