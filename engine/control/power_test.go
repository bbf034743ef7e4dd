// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
)

// ownedBy is a state folder whose owner answers by h.
func ownedBy(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".ironrail")
	o, err := control.AcquireFolder(dir, "apply", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Release() })
	ln, err := o.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: h}
	t.Cleanup(func() { _ = s.Close() })
	go func() { _ = s.Serve(ln) }()
	return dir
}

// TestPowerOfAnOlderOwner: one that knows no stream sends a list, of all nodes.
func TestPowerOfAnOlderOwner(t *testing.T) {
	t.Parallel()
	dir := ownedBy(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`[{"node":"n1","state":"on"},{"node":"n2","error":"no answer"}]` + "\n"))
	})
	var told []string
	if err := control.NewClient(dir).AskBMCs(t.Context(), control.BMCQuestion{For: control.AskPower}, []string{"n1"}, func(p control.BMCAnswer) { told = append(told, p.Node) }); err != nil || !slices.Equal(told, []string{"n1", "n2"}) {
		t.Errorf("%v, %v", told, err)
	}
	told = nil
	if err := control.NewClient(dir).AskBMCs(t.Context(), control.BMCQuestion{For: control.AskLog}, nil, func(p control.BMCAnswer) { told = append(told, p.Node+": "+p.State+p.Error) }); err != nil ||
		!slices.Equal(told, []string{"n1: the ironrail that owns the state is older and asks BMCs for their power alone", "n2: no answer"}) {
		t.Errorf("the logs: %v, %v", told, err)
	}
}

// TestManyLogs: the logs of many BMCs are more than one answer may be, and all arrive.
func TestManyLogs(t *testing.T) {
	t.Parallel()
	const logs = 70
	line := []byte(`{"node":"n1","log":[{"text":"` + strings.Repeat("x", 1<<20) + `"}]}` + "\n")
	dir := ownedBy(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		for range logs {
			_, _ = w.Write(line)
		}
	})
	n := 0
	if err := control.NewClient(dir).AskBMCs(t.Context(), control.BMCQuestion{For: control.AskLog}, nil, func(control.BMCAnswer) { n++ }); err != nil || n != logs {
		t.Errorf("%d of %d logs arrive, %v", n, logs, err)
	}
}

// TestPowerForAnOlderClient: who does not ask for a stream gets the list.
func TestPowerForAnOlderClient(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	control.Handler(backend{event.NewBus(1)}, "1.2.3").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/power/status", http.NoBody))
	if got := w.Body.String(); w.Header().Get("Content-Type") != "application/json" || !strings.HasPrefix(got, `[{"node":"n1","state":"on",`) || strings.Count(got, "\n") != 1 {
		t.Errorf("%v %s", w.Header(), got)
	}
}
