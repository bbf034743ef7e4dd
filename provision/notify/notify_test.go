// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
)

var at = time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)

// fast are times for tests.
var fast = Options{Gather: 20 * time.Millisecond, Pauses: []time.Duration{time.Millisecond, time.Millisecond}, Finish: 30 * time.Second}

// some are events of a run, most of which nobody is notified of.
func some() []event.Event {
	return []event.Event{
		{Type: event.RunStarted, Time: at, Run: "r1"},
		{Type: event.StepDone, Time: at, Run: "r1", Node: "n1", Step: "n1/bmc"},
		{Type: event.StepFailed, Time: at, Run: "r1", Node: "n2", Stage: "bmc", Step: "n2/bmc"},
		{Type: event.FindingMade, Time: at.Add(time.Second), Run: "r1", Node: "n2", Stage: "bmc", Step: "n2/bmc", Text: "nothing answers\x1b[31m at <BMC>", Data: map[string]string{"action": "Check the cable."}},
		{Type: event.FindingMade, Time: at.Add(time.Second), Run: "r1", Text: "another DHCP server answers"},
		{Type: event.Note, Text: "a note"},
		{Type: event.Held, Time: at.Add(2 * time.Second), Run: "r1", Node: "n3", Text: "held by ann: riser"},
		{Type: event.Released, Time: at.Add(3 * time.Second), Run: "r1", Node: "n3", Text: "released by ann"},
		{Type: event.RunEnded, Time: at.Add(4 * time.Second), Run: "r1", Text: "failed"},
	}
}

// receiver keeps what is posted to it, and answers with the statuses in turn, 200 in the end.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int
	bodies   []string
	headers  []http.Header
}

func newReceiver(t *testing.T, start func(http.Handler) *httptest.Server, statuses ...int) *receiver {
	t.Helper()
	r := &receiver{statuses: statuses}
	r.Server = start(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies, r.headers = append(r.bodies, q.Method+" "+q.URL.String()+" "+string(b)), append(r.headers, q.Header.Clone())
		if len(r.statuses) > 0 {
			w.WriteHeader(r.statuses[0])
			r.statuses = r.statuses[1:]
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// run notifies of events, and returns what was said.
func run(t *testing.T, o Options, events []event.Event, blocks ...*inventory.Notify) string {
	t.Helper()
	var mu sync.Mutex
	var said []string
	inv := &inventory.Inventory{Site: inventory.Site{Name: "north"}, Notifies: blocks}
	for _, b := range blocks {
		if b.Timeout == 0 {
			b.Timeout = 5 * time.Second
		}
		if b.On == nil {
			b.On = inventory.NotifyOn
		}
	}
	n, err := New(inv, resolve, func(s string) { mu.Lock(); said = append(said, s); mu.Unlock() }, o)
	if err != nil {
		t.Fatal(err)
	}
	bus := event.NewBus(len(events) + 1)
	next := bus.Subscribe(0).Next
	for _, e := range events {
		bus.Emit(e)
	}
	bus.Close()
	n.Follow(t.Context(), next)
	return strings.Join(said, "\n")
}

// resolve knows the secrets of the tests.
func resolve(r secret.Ref) (secret.Value, error) {
	v, ok := map[secret.Ref]string{"env:TOKEN": "canary-token\n", "env:KEY": "canary-key", "env:BAD": "a\nb", "env:URL": "https://user@host/", "env:CLEAR": "http://192.0.2.1/canary", "env:OWN": "http://127.0.0.1/canary"}[r]
	if !ok {
		return secret.Value{}, fmt.Errorf("%s is not set", r)
	}
	return secret.NewValue(v), nil
}

// TestWebhook: findings, holds and the end of the run reach a webhook over TLS, with the
// secret headers, in the form of the schema.
func TestWebhook(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, httptest.NewTLSServer)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}))
	said := run(t, fast, some(), &inventory.Notify{Kind: "webhook", Name: "ops", URL: inventory.NotifyURL{Text: r.URL + "/hook?x=1"}, CA: ca, Token: "env:TOKEN", Headers: []inventory.NotifyHeader{{Name: "X-Key", Value: "env:KEY"}}})
	if said != "" || len(r.bodies) != 1 {
		t.Fatalf("%d messages; said %q", len(r.bodies), said)
	}
	if h := r.headers[0]; h.Get("Authorization") != "Bearer canary-token" || h.Get("X-Key") != "canary-key" || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h)
	}
	body, ok := strings.CutPrefix(r.bodies[0], "POST /hook?x=1 ")
	want := `{"format":1,"site":"north","notices":[` +
		`{"type":"finding","time":"2026-11-29T01:00:01Z","run":"r1","node":"n2","stage":"bmc","step":"n2/bmc","text":"nothing answers\\x1b[31m at \u003cBMC\u003e","action":"Check the cable."},` +
		`{"type":"finding","time":"2026-11-29T01:00:01Z","run":"r1","text":"another DHCP server answers"},` +
		`{"type":"hold","time":"2026-11-29T01:00:02Z","run":"r1","node":"n3","text":"held by ann: riser"},` +
		`{"type":"release","time":"2026-11-29T01:00:03Z","run":"r1","node":"n3","text":"released by ann"},` +
		`{"type":"run-ended","time":"2026-11-29T01:00:04Z","run":"r1","outcome":"failed","steps":{"done":1,"failed":1,"findings":2}}]}`
	if !ok || body != want {
		t.Errorf("got\n%s\nwant\n%s", body, want)
	}
	schema := compile(t)
	check := func(text string, good bool) {
		t.Helper()
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
	check(body, true)
	check(strings.Replace(body, `"outcome":"failed",`, "", 1), false)
	check(strings.Replace(body, `"run":"r1"`, `"token":"r1"`, 1), false)
}

// compile reads the schema of messages.
func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	c := jsonschema.NewCompiler()
	if err == nil {
		err = c.AddResource("schema.json", doc)
	}
	var s *jsonschema.Schema
	if err == nil {
		s, err = c.Compile("schema.json")
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOnlyWhatIsAskedFor: a block gets what its `on` names.
func TestOnlyWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, httptest.NewServer)
	run(t, fast, some(), &inventory.Notify{Kind: "webhook", Name: "ops", URL: inventory.NotifyURL{Text: r.URL}, On: []string{"run"}})
	if len(r.bodies) != 1 || strings.Count(r.bodies[0], `"type"`) != 1 || !strings.Contains(r.bodies[0], "run-ended") {
		t.Errorf("got %q", r.bodies)
	}
}

// TestTries: trouble of a receiver is tried again, a refusal is not, and a redirect is not
// followed with the credentials. What is said names no URL and no secret.
func TestTries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		statuses []int
		tries    int
		said     string
	}{
		{"passing trouble", []int{500, 429}, 3, ""},
		{"lasting trouble", []int{503, 503, 503, 503}, 3, "warning: notify ops: not delivered: the receiver answers with status 503\nwarning: notify ops: 5 notices were not delivered: the receiver answers with status 503"},
		{"refusal", []int{401}, 1, "warning: notify ops: not delivered: the receiver answers with status 401\nwarning: notify ops: 5 notices were not delivered: the receiver answers with status 401"},
		{"redirect", []int{302}, 1, "warning: notify ops: not delivered: the receiver answers with status 302\nwarning: notify ops: 5 notices were not delivered: the receiver answers with status 302"},
	} {
		r := newReceiver(t, httptest.NewServer, c.statuses...)
		said := run(t, fast, some(), &inventory.Notify{Kind: "webhook", Name: "ops", URL: inventory.NotifyURL{Text: r.URL + "/canary-path"}, Token: "env:TOKEN"})
		if len(r.bodies) != c.tries || said != c.said {
			t.Errorf("%s: %d tries, said %q", c.name, len(r.bodies), said)
		}
	}
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	said := run(t, fast, some(), &inventory.Notify{Kind: "webhook", Name: "ops", URL: inventory.NotifyURL{Text: "http://" + nobody.Addr().String() + "/canary-path"}})
	if !strings.Contains(said, "connection refused") || strings.Contains(said, "canary") {
		t.Errorf("said %q", said)
	}
}

// TestLossIsSaid: what was not delivered is said in the end, also where a later message was
// delivered, and in that message where it has a place for it.
func TestLossIsSaid(t *testing.T) {
	t.Parallel()
	var events []event.Event
	for range batchSize + 50 {
		events = append(events, event.Event{Type: event.FindingMade, Time: at, Run: "r1", Text: "x"})
	}
	slow := fast
	slow.Gather = time.Hour // messages are full, or the last
	for _, kind := range []string{"webhook", "alertmanager"} {
		r := newReceiver(t, httptest.NewServer, 401)
		said := run(t, slow, events, &inventory.Notify{Kind: kind, Name: "ops", URL: inventory.NotifyURL{Text: r.URL}})
		if want := "\nwarning: notify ops: 100 notices were not delivered: the receiver answers with status 401"; !strings.HasSuffix(said, want) || len(r.bodies) != 2 {
			t.Errorf("%s: %d messages, said %q", kind, len(r.bodies), said)
		}
		if kind == "webhook" && !strings.HasSuffix(r.bodies[1], `,"dropped":100}`) {
			t.Errorf("the second message ends with %s", r.bodies[1][len(r.bodies[1])-40:])
		}
	}
}

// TestSlowReceiver: a receiver that takes nothing holds nobody up: events are read on, the
// queue is bounded, and the end has a limit.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	t.Cleanup(func() { close(stuck); server.Close() })
	inv := &inventory.Inventory{Notifies: []*inventory.Notify{{Kind: "webhook", Name: "ops", URL: inventory.NotifyURL{Text: server.URL}, On: inventory.NotifyOn, Timeout: time.Minute}}}
	var said []string
	var mu sync.Mutex
	n, err := New(inv, resolve, func(s string) { mu.Lock(); said = append(said, s); mu.Unlock() }, Options{Gather: time.Millisecond, Finish: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	read, total := 0, queueSize+2*batchSize+500
	n.Follow(t.Context(), func(context.Context) (event.Event, error) {
		if read == total {
			return event.Event{}, io.EOF
		}
		read++
		return event.Event{Type: event.FindingMade, Text: "x"}, nil
	})
	if read != total || len(said) != 1 || !strings.HasPrefix(said[0], fmt.Sprintf("warning: notify ops: %d notices were not delivered: ", total)) {
		t.Errorf("read %d of %d; said %q", read, total, said)
	}
}

// TestSecretsAreFoundFirst: a secret that is not there, or cannot be sent, is an error
// before anything is done, and is not repeated.
func TestSecretsAreFoundFirst(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]*inventory.Notify{
		"notify ops: env:NONE is not set":                                                          {URL: inventory.NotifyURL{Secret: "env:NONE"}},
		"notify ops: the value of header X-Key has control characters":                             {URL: inventory.NotifyURL{Text: "http://h"}, Headers: []inventory.NotifyHeader{{Name: "X-Key", Value: "env:BAD"}}},
		"notify ops: the URL that env:URL holds holds a user name; give token or a header instead": {URL: inventory.NotifyURL{Secret: "env:URL"}},
		"notify ops: the trust in the server is neither certificates in PEM nor a pin":             {URL: inventory.NotifyURL{Text: "https://h"}, CA: "x"},
	} {
		b.Name, b.Kind = "ops", "webhook"
		if _, err := New(&inventory.Inventory{Notifies: []*inventory.Notify{b}}, resolve, nil, Options{}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestSecretInClear: a secret URL that crosses a network unencrypted is a warning, which does not
// name it.
func TestSecretInClear(t *testing.T) {
	t.Parallel()
	for ref, want := range map[secret.Ref]bool{"env:CLEAR": true, "env:OWN": false} {
		said := ""
		_, err := New(&inventory.Inventory{Notifies: []*inventory.Notify{{Kind: "webhook", Name: "ops", URL: inventory.NotifyURL{Secret: ref}}}}, resolve, func(s string) { said += s }, Options{})
		if err != nil || strings.Contains(said, "goes over http") != want || strings.Contains(said, "canary") {
			t.Errorf("%s: said %q, %v", ref, said, err)
		}
	}
}

// TestPeerAlertmanager: a real Alertmanager takes the alerts, shows them with their
// labels, and those of a released hold are gone.
func TestPeerAlertmanager(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "prometheus-alertmanager")
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(config, []byte("route: {receiver: none}\nreceivers: [{name: none}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	am := exec.CommandContext(ctx, "prometheus-alertmanager", "--config.file="+config, "--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr, "--web.route-prefix=/am", "--cluster.listen-address=", "--log.level=error")
	am.Cancel, am.WaitDelay = func() error { return am.Process.Signal(os.Interrupt) }, 10*time.Second
	if err := am.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = am.Wait() }()
	get := func() (list []struct {
		Labels, Annotations map[string]string
		Status              struct{ State string }
	}, err error) {
		r, err := http.Get("http://" + addr + "/am/api/v2/alerts")
		if err != nil {
			return nil, err
		}
		defer r.Body.Close()
		return list, errors.Join(json.NewDecoder(r.Body).Decode(&list))
	}
	for _, err = get(); err != nil; _, err = get() {
		if ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	events := some()
	for i := range events {
		events[i].Time = time.Now().Add(time.Duration(i-len(events)) * time.Second)
	}
	block := &inventory.Notify{Kind: "alertmanager", Name: "am", URL: inventory.NotifyURL{Text: "http://" + addr + "/am"}, Lasts: time.Hour}
	if said := run(t, fast, events, block); said != "" {
		t.Fatal(said)
	}
	list, err := get()
	if err != nil || len(list) != 3 {
		t.Fatalf("%d alerts, %v: %+v", len(list), err, list)
	}
	found := map[string]map[string]string{}
	for _, a := range list {
		found[a.Labels["alertname"]+" "+a.Labels["node"]] = a.Labels
		if a.Labels["site"] != "north" || a.Annotations["summary"] == "" {
			t.Errorf("%+v", a)
		}
	}
	if f := found["IronrailFinding n2"]; f["stage"] != "bmc" || f["severity"] != "warning" || found["IronrailRunEnded "]["outcome"] != "failed" || found["IronrailFinding "]["finding"] == "" {
		t.Errorf("got %v", found)
	}
}
