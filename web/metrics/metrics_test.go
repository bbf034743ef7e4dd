// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
	"github.com/ironrail/ironrail/provision/netboot/evidence"
	"github.com/ironrail/ironrail/web/metrics"
)

var began = time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)

// source is a site with a run of four nodes.
func source() metrics.Source {
	return metrics.Source{
		Version: "test", Now: func() time.Time { return began.Add(time.Hour) },
		Status: func(context.Context) (control.Status, error) {
			return control.Status{Run: &apply.Status{Run: "r1", Started: began, Counts: map[string]int{"done": 7, "running": 2, "failed": 1}}, Nodes: []state.Node{
				{Name: "n1", Accepted: true}, {Name: "n2", Quarantine: &state.Quarantine{}}, {Name: "n3", Hold: &state.Hold{By: "ann"}}, {Name: "n4"}}}, nil
		},
		Report: func(context.Context) (report.Input, error) {
			m := func(check string, figure float64, limit, verdict string) report.Measurement {
				return report.Measurement{Check: check, Measured: figure, Unit: "B/s", Limit: limit, Verdict: verdict}
			}
			return report.Input{Tests: []report.Test{{Measurements: []report.Measurement{
				m("pair", 45e9, ">= 40GB/s", "pass"), m("pair", 30e9, ">= 40GB/s", "fail"), m("pair", 44e9, ">= 40GB/s", "pass"),
				m("temperature", 80, "<= 82", "pass"), m("temperature", 60, "<= 82", "pass"),
				m("storage", 2e9, ">= 1GB/s", "pass"), m("storage", 0, ">= 1GB/s", "fail"), m("idle", 0, ">= 1GB/s", "not-judged"), {Check: "look", Verdict: "not-judged"}}}}}, nil
		},
	}
}

// counted is what the services have counted.
func counted() provision.Counters {
	return provision.Counters{DHCP: dhcp.Stats{Received: 12, Answered: 9, Refused: 2, Malformed: 1}, BMC: bmc.Counts{Requests: 31, Errors: map[errkind.Kind]uint64{errkind.Timeout: 3, errkind.Auth: 1}},
		Boot: []evidence.Count{{Proto: boot.DHCP, What: "discover", Refused: true, Events: 4000}, {Proto: boot.TFTP, What: "sent", Events: 2, Bytes: 4096}, {Proto: boot.TFTP, What: "began", Events: 2}}}
}

// ofSource are the metrics of source, with what its services counted.
func ofSource() *metrics.Metrics {
	m := metrics.New(site(), source())
	m.CountServices(counted)
	return m
}

// site has two nodes of one model.
func site() *inventory.Inventory {
	hw := &inventory.Hardware{Name: "hgx-h100"}
	return &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Hardware: hw}, {Name: "n2", Hardware: hw}}}
}

// follow counts events, all of them, in order.
func follow(t *testing.T, m *metrics.Metrics, events ...event.Event) {
	t.Helper()
	bus := event.NewBus(len(events) + 1)
	for _, e := range events {
		bus.Emit(e)
	}
	bus.Close()
	if err := m.Follow(t.Context(), bus.Subscribe(0).Next); err != nil {
		t.Fatal(err)
	}
}

// scrape returns the lines of our own metrics.
func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, metrics.Path, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// some are events of a short run.
func some() []event.Event {
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	step := func(typ event.Type, s int, node, stage, id string, data map[string]string) event.Event {
		return event.Event{Type: typ, Time: at(s), Run: "r1", Node: node, Stage: stage, Step: id, Data: data}
	}
	return []event.Event{
		{Type: event.RunStarted, Time: at(0), Run: "r1", Total: 4},
		step(event.StepStarted, 0, "n1", "install", "n1/install.write", nil),
		step(event.StepStarted, 1, "n2", "bmc", "n2/bmc", nil),
		step(event.StepRetried, 4, "n2", "bmc", "n2/bmc", map[string]string{"kind": "timeout"}),
		step(event.StepFailed, 9, "n2", "bmc", "n2/bmc", map[string]string{"kind": "unreachable"}),
		step(event.FindingMade, 9, "n2", "bmc", "n2/bmc", nil),
		step(event.StepSkipped, 9, "n2", "install", "n2/install.write", nil),
		step(event.StepSlow, 80, "n1", "install", "n1/install.write", nil),
		step(event.StepDone, 90, "n1", "install", "n1/install.write", nil),
		step(event.StepStarted, 90, "", "handover", "site/handover.s", nil),
		step(event.StepDone, 91, "", "handover", "site/handover.s", map[string]string{"observed": "true"}),
		{Type: event.Evidence, Time: at(3), Node: "n1", Data: map[string]string{"proto": "tftp", "what": "sent"}, Done: 1},
		{Type: event.Evidence, Time: at(3), Node: "n1", Text: "console: a line"},
		{Type: event.RunEnded, Time: at(95), Run: "r1", Text: "failed"},
	}
}

// TestMetrics: events, status, report and counters become the lines that are scraped.
func TestMetrics(t *testing.T) {
	t.Parallel()
	m := ofSource()
	follow(t, m, some()...)
	got := scrape(t, m)
	for _, want := range []string{
		`ironrail_build_info{version="test"} 1`,
		`ironrail_nodes{state="accepted"} 1`, `ironrail_nodes{state="quarantined"} 1`, `ironrail_nodes{state="held"} 1`, `ironrail_nodes{state="adopted"} 0`,
		`ironrail_run_active 1`, `ironrail_run_started_timestamp_seconds 1.795914e+09`, `ironrail_run_steps{state="done"} 7`, `ironrail_findings{scope="node"} 1`,
		`ironrail_steps_ended_total{result="done",stage="install"} 1`, `ironrail_steps_ended_total{result="skipped",stage="install"} 1`, `ironrail_steps_ended_total{result="observed",stage="handover"} 1`,
		`ironrail_step_failures_total{kind="unreachable",stage="bmc"} 1`, `ironrail_step_retries_total{kind="timeout",stage="bmc"} 1`, `ironrail_steps_slow_total{stage="install"} 1`,
		`ironrail_step_duration_seconds_bucket{model="hgx-h100",result="done",stage="install",le="60"} 0`, `ironrail_step_duration_seconds_bucket{model="hgx-h100",result="done",stage="install",le="120"} 1`,
		`ironrail_step_duration_seconds_sum{model="hgx-h100",result="failed",stage="bmc"} 8`, `ironrail_step_duration_seconds_count{model="none",result="observed",stage="handover"} 1`,
		`ironrail_findings_total{stage="bmc"} 1`, `ironrail_runs_ended_total{outcome="failed"} 1`,
		`ironrail_boot_events_total{event="sent",protocol="tftp",refused="false"} 2`, `ironrail_boot_events_total{event="discover",protocol="dhcp",refused="true"} 4000`, `ironrail_boot_sent_bytes_total{protocol="tftp"} 4096`,
		`ironrail_measurements{check="pair",verdict="fail"} 1`, `ironrail_measurements{check="look",verdict="not-judged"} 1`,
		`ironrail_measurement_worst_ratio{check="pair",limit="at_least"} 0.75`, `ironrail_measurement_median_ratio{check="pair",limit="at_least"} 1.1`,
		`ironrail_measurement_worst_ratio{check="temperature",limit="at_most"} 0.97560`,
		`ironrail_measurement_worst_ratio{check="storage",limit="at_least"} 0` + "\n",
		`ironrail_dhcp_packets_total{result="answered"} 9`, `ironrail_bmc_requests_total 31`, `ironrail_bmc_errors_total{kind="timeout"} 3`,
		`ironrail_scrape_errors{part="status"} 0`, `go_goroutines `,
	} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("no line %q", want)
		}
	}
	if strings.Contains(got, `ratio{check="idle"`) {
		t.Error("what was not measured has a ratio")
	}
	if strings.Contains(got, `"n1"`) || strings.Contains(got, "console") {
		t.Error("a node or a text is a label")
	}
	if t.Failed() {
		t.Log(got)
	}
}

// TestLabelsAreBounded: whatever events say, a label has a bounded number of values.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := metrics.New(site(), metrics.Source{})
	var events []event.Event
	for i := range 1000 {
		events = append(events, event.Event{Type: event.StepRetried, Stage: fmt.Sprint("s", i), Data: map[string]string{"kind": fmt.Sprint("k", i)}})
	}
	events = append(events, event.Event{Type: event.FindingMade, Stage: strings.Repeat("x", 1000)})
	follow(t, m, events...)
	got := scrape(t, m)
	if n := strings.Count(got, "\nironrail_step_retries_total{"); n > 65 || !strings.Contains(got, `ironrail_step_retries_total{kind="other",stage="other"} 936`) {
		t.Errorf("%d lines of retries", n)
	}
	if !strings.Contains(got, `ironrail_findings_total{stage="other"} 1`) {
		t.Error("a long value is a label")
	}
}

// TestMissedEvents: a reader that came too late says how many events it has not counted.
func TestMissedEvents(t *testing.T) {
	t.Parallel()
	m := metrics.New(nil, metrics.Source{})
	bus := event.NewBus(4)
	next := bus.Subscribe(1).Next
	for range 10 {
		bus.Emit(event.Event{Type: event.RunEnded, Text: "done"})
	}
	bus.Close()
	if err := m.Follow(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got := scrape(t, m); !strings.Contains(got, "\nironrail_events_missed_total 6\n") || !strings.Contains(got, `ironrail_runs_ended_total{outcome="done"} 4`) {
		t.Error(got)
	}
}

// TestUnreadableState: what cannot be read is left out and said, and a report is read once
// a minute.
func TestUnreadableState(t *testing.T) {
	t.Parallel()
	s, reads := source(), 0
	now := began
	s.Now = func() time.Time { return now }
	s.Status = func(context.Context) (control.Status, error) { return control.Status{}, errors.New("no state") }
	whole := s.Report
	s.Report = func(ctx context.Context) (report.Input, error) { reads++; return whole(ctx) }
	m := metrics.New(site(), s)
	for range 3 {
		now = now.Add(time.Second)
		if got := scrape(t, m); !strings.Contains(got, `ironrail_scrape_errors{part="status"} 1`) || strings.Contains(got, "ironrail_nodes{") || !strings.Contains(got, "ironrail_measurements{") {
			t.Errorf("got %s", got)
		}
	}
	now = now.Add(2 * time.Minute)
	scrape(t, m)
	if reads != 2 {
		t.Errorf("the report was read %d times", reads)
	}
}

// TestEventsAtScrape: what happened since the last scrape is counted at the next one, and what cannot
// be read is said.
func TestEventsAtScrape(t *testing.T) {
	t.Parallel()
	s, now, broken := source(), some(), error(nil)
	s.Events = func(f func(event.Event)) error {
		for _, e := range now {
			f(e)
		}
		now = nil
		return broken
	}
	m := metrics.New(site(), s)
	for range 2 {
		if got := scrape(t, m); !strings.Contains(got, `ironrail_runs_ended_total{outcome="failed"} 1`) || !strings.Contains(got, `ironrail_step_duration_seconds_sum{model="hgx-h100",result="done",stage="install"} 90`) || !strings.Contains(got, `ironrail_scrape_errors{part="events"} 0`) {
			t.Error(got)
		}
	}
	now, broken = some(), errors.New("no events")
	if got := scrape(t, m); !strings.Contains(got, `ironrail_runs_ended_total{outcome="failed"} 2`) || !strings.Contains(got, `ironrail_scrape_errors{part="events"} 1`) {
		t.Error(got)
	}
}

// queries are the queries of the dashboards in docs/grafana.
func queries(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("../../docs/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no dashboards: %v", err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if q, ok := v["expr"].(string); ok {
				all = append(all, strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$stage", "install", "$model", ".*").Replace(q))
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		walk(doc)
	}
	if len(all) < 10 {
		t.Fatalf("only %d queries were found", len(all))
	}
	return all
}

var metricName = regexp.MustCompile(`\b(?:ironrail|process|go)_[a-z_]+`)

// TestDashboardsKnowTheMetrics: each query of the dashboards asks for metrics that there
// are.
func TestDashboardsKnowTheMetrics(t *testing.T) {
	t.Parallel()
	m := ofSource()
	follow(t, m, some()...)
	got := scrape(t, m)
	for _, q := range queries(t) {
		names := metricName.FindAllString(q, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for nothing of ours", q)
		}
		for _, n := range names {
			if !strings.Contains(got, "\n"+n+"{") && !strings.Contains(got, "\n"+n+" ") {
				t.Errorf("%s asks for %s, which is not scraped", q, n)
			}
		}
	}
}

// TestPeerPromtool: promtool finds no fault in the metrics, and reads all queries of the
// dashboards.
func TestPeerPromtool(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "promtool")
	m := ofSource()
	follow(t, m, some()...)
	check := exec.CommandContext(t.Context(), "promtool", "check", "metrics")
	var own strings.Builder // those of client_golang are not ours to name
	for line := range strings.Lines(scrape(t, m)) {
		if strings.Contains(line, "ironrail_") {
			own.WriteString(line)
		}
	}
	check.Stdin = strings.NewReader(own.String())
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
	rules := "groups:\n- name: dashboards\n  rules:\n"
	for i, q := range queries(t) {
		rules += fmt.Sprintf("  - record: q%d\n    expr: %q\n", i, q)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestPeerPrometheus: a real Prometheus scrapes, and answers every query of the dashboards.
func TestPeerPrometheus(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "prometheus")
	m := ofSource()
	follow(t, m, some()...)
	served := httptest.NewServer(m.Handler())
	t.Cleanup(served.Close)
	addr := strings.TrimPrefix(served.URL, "http://")
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: ironrail\n  static_configs: [{targets: ['"+addr+"']}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	api := free.Addr().String()
	free.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	prometheus := exec.CommandContext(ctx, "prometheus", "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+api, "--log.level=error")
	prometheus.Cancel, prometheus.WaitDelay = func() error { return prometheus.Process.Signal(os.Interrupt) }, 10*time.Second
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = prometheus.Wait() }()
	ask := func(query string) (series int, text string) {
		r, err := http.Get("http://" + api + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			return 0, err.Error()
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		var answer struct {
			Status string
			Data   struct{ Result []json.RawMessage }
		}
		if json.Unmarshal(b, &answer) != nil || answer.Status != "success" {
			return -1, string(b)
		}
		return len(answer.Data.Result), string(b)
	}
	for n, text := 0, ""; n < 1; n, text = ask(`count_over_time(ironrail_run_active[1m]) > 2`) { // rates need two values
		if ctx.Err() != nil {
			t.Fatalf("prometheus does not scrape: %s", text)
		}
		time.Sleep(200 * time.Millisecond)
	}
	if n, text := ask(`ironrail_nodes{job="ironrail",state="quarantined"} == 1`); n != 1 {
		t.Errorf("nodes: %s", text)
	}
	for _, q := range queries(t) {
		if n, text := ask(q); n < 1 {
			t.Errorf("%s: %s", q, text)
		}
	}
}
