// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/web/view"
	"github.com/ironrail/ironrail/web/webtest"
)

const root = "../.."

func TestMain(m *testing.M) {
	code := m.Run()
	webtest.Remove()
	os.Exit(code)
}

// keeperOf keeps what is known of the site in a folder.
func keeperOf(dir string) *view.Keeper {
	return &view.Keeper{Dir: dir, State: filepath.Join(dir, provision.StateFolder), Open: webtest.OpenSite, Now: time.Now, Version: "test", Load: func() (*inventory.Inventory, error) { return webtest.Load(dir) }}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	o, err := keeperOf(webtest.Kept(t, root)).Overview(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if o.Site != "hgx-h100" || o.Nodes != 4 || o.Up != 3 || !o.Rehearsal || o.Folded || o.Run == nil || o.Run.Active {
		t.Errorf("%+v", o)
	}
	if want := []view.Count{{State: why.Quarantined, Nodes: 1}, {State: why.Accepted, Nodes: 3}}; !slices.Equal(o.Counts, want) {
		t.Errorf("counts %v", o.Counts)
	}
	if len(o.Groups) != 1 || !slices.Equal(o.Groups[0].Nodes, []string{webtest.BadGPU}) {
		t.Errorf("groups %+v", o.Groups)
	}
	drawn := map[string]view.Item{}
	for _, row := range o.Rows {
		for _, r := range row.Racks {
			for _, i := range r.Items {
				drawn[i.Name] = i
			}
		}
	}
	if i := drawn[webtest.BadGPU]; i.State != why.Quarantined || i.Unit != 9 || i.Height != 8 || i.Text == "" {
		t.Errorf("%s is drawn as %+v", webtest.BadGPU, i)
	}
	if i := drawn[webtest.Healthy]; i.State != why.Accepted {
		t.Errorf("%s is drawn as %+v", webtest.Healthy, i)
	}
}

func TestNode(t *testing.T) {
	t.Parallel()
	k := keeperOf(webtest.Kept(t, root))
	n, err := k.Node(t.Context(), webtest.BadGPU)
	if err != nil {
		t.Fatal(err)
	}
	if n.State != why.Quarantined || len(n.Findings) == 0 || n.Answer.Action == "" || len(n.Lines) == 0 || n.Place == nil || len(n.Skipped) == 0 {
		t.Errorf("%+v", n)
	}
	found := false
	for _, s := range n.Timeline.Steps {
		found = found || s.Found || s.State == "failed"
	}
	if !found || n.Timeline.To.Before(n.Timeline.From) {
		t.Errorf("no step of its timeline has found anything: %+v", n.Timeline)
	}
	good, err := k.Node(t.Context(), webtest.Healthy)
	if err != nil {
		t.Fatal(err)
	}
	shares := 0
	for _, f := range good.Figures {
		if f.Share > 0 && f.Limit == "" || f.Verdict == "" || f.Check == "" {
			t.Errorf("%+v", f)
		}
		if f.Share > 0 {
			shares++
		}
	}
	if good.State != why.Accepted || shares < 5 {
		t.Errorf("%s with %d figures against limits", good.State, shares)
	}
	if _, err := k.Node(t.Context(), "n99"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a node that is not there: %v", err)
	}
}

func TestNodesAndPages(t *testing.T) {
	t.Parallel()
	k := keeperOf(webtest.Kept(t, root))
	for _, c := range []struct {
		name   string
		filter view.NodeFilter
		want   int
	}{
		{"all", view.NodeFilter{}, 4}, {"by state", view.NodeFilter{State: why.Quarantined}, 1}, {"by rack", view.NodeFilter{Rack: "r01"}, 4}, {"by another rack", view.NodeFilter{Rack: "r9"}, 0},
		{"by name", view.NodeFilter{Text: "U09"}, 1}, {"past the end", view.NodeFilter{Page: 1000}, 4}, {"before the first", view.NodeFilter{Page: -3}, 4},
	} {
		n, err := k.Nodes(t.Context(), c.filter)
		if err != nil || len(n.Nodes) != c.want || n.Number != 1 || n.Pages != 1 {
			t.Errorf("%s: %d nodes, page %d of %d, %v", c.name, len(n.Nodes), n.Number, n.Pages, err)
		}
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	k := keeperOf(webtest.Kept(t, root))
	f, err := k.Findings(t.Context())
	if err != nil || len(f.Work) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	j := f.Work[0]
	if j.Number != 1 || len(j.Stops) != 1 || j.Stops[0].Rack != "r01" || j.Stops[0].Unit != 9 || !strings.HasPrefix(j.ID, "f-") || j.Action == "" {
		t.Errorf("%+v", j)
	}
	p, err := k.Finding(t.Context(), j.ID)
	if err != nil || len(p.Findings) == 0 || !slices.Equal(p.Nodes, []string{webtest.BadGPU}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := k.Finding(t.Context(), "f-000000"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a finding that is not known: %v", err)
	}
}

// TestSearch finds a node by its name, serial, MAC and GUID, in any way of writing them.
func TestSearch(t *testing.T) {
	t.Parallel()
	dir := webtest.Kept(t, root)
	k := keeperOf(dir)
	inv, err := webtest.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := inv.Node(webtest.BadGPU)
	mac := n.BootMAC.String()
	for what, q := range map[string]string{"name": "R01-U09", "serial": strings.ToLower(n.Serial), "MAC": mac, "MAC with hyphens": strings.ReplaceAll(strings.ToUpper(mac), ":", "-"),
		"MAC without": strings.ReplaceAll(mac, ":", ""), "BMC": n.BMC.Address.String()} {
		s, err := k.Search(t.Context(), q)
		if err != nil || len(s.Hits) == 0 || s.Hits[0].Name != webtest.BadGPU || s.Hits[0].Kind != "node" {
			t.Errorf("%s %q: %+v, %v", what, q, s.Hits, err)
		}
	}
	guids, err := k.Search(t.Context(), "guid that is none")
	if err != nil || len(guids.Hits) != 0 {
		t.Errorf("%+v, %v", guids, err)
	}
	all, err := k.Search(t.Context(), "0")
	if err != nil || len(all.Hits) != view.MostHits || all.All <= view.MostHits {
		t.Errorf("%d hits of %d, %v", len(all.Hits), all.All, err)
	}
	byGUID := ""
	for _, q := range []string{"0x", "a0", "5", "b"} {
		s, err := k.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range s.Hits {
			if strings.HasPrefix(h.What, "GUID") {
				byGUID = h.Text
			}
		}
	}
	if s, err := k.Search(t.Context(), strings.ToUpper(byGUID)); byGUID == "" || err != nil || len(s.Hits) == 0 {
		t.Errorf("no GUID is found (%q): %v", byGUID, err)
	}
}

func TestFabric(t *testing.T) {
	t.Parallel()
	k := keeperOf(webtest.Kept(t, root))
	all, err := k.Fabrics(t.Context())
	if err != nil || len(all.Fabrics) == 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	f, err := k.Fabric(t.Context(), "compute", view.CableFilter{})
	if err != nil || f.Cables == 0 || len(f.List) != f.Cables || len(f.Names) == 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	for _, c := range f.List {
		if c.State != "conforms" || c.From == "" || c.To == "" {
			t.Errorf("%+v", c)
		}
	}
	if m, err := k.Map(t.Context(), "compute"); err != nil || !strings.Contains(string(m), "<svg") {
		t.Errorf("no map: %v", err)
	}
	if s, err := k.Switch(t.Context(), f.Names[0]); err != nil || s.Name != f.Names[0] {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := k.Fabric(t.Context(), "nope", view.CableFilter{}); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a fabric that is not there: %v", err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	p, err := keeperOf(webtest.Kept(t, root)).Plan(t.Context(), view.PlanRequest{Node: webtest.Healthy})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Erases) != 4 || p.Steps == 0 || len(p.List) == 0 || len(p.Kinds) == 0 {
		t.Errorf("%d erased, %d steps, %d of the node", len(p.Erases), p.Steps, len(p.List))
	}
	steps := 0
	for _, k := range p.Kinds {
		steps += k.Steps
	}
	if steps != p.Steps {
		t.Errorf("%d of %d steps are of a kind", steps, p.Steps)
	}
}

// TestReview: a plan that waits for its approval is shown before that of the last run, and whoever
// looks is sent the change; once it was approved, its run takes its place as soon as it is on record.
func TestReview(t *testing.T) {
	t.Parallel()
	k := keeperOf(webtest.Kept(t, root))
	read := func() view.Plan {
		t.Helper()
		p, err := k.Plan(t.Context(), view.PlanRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	ran := read()
	first, err := k.Current(t.Context())
	if err != nil || ran.Review != "" || ran.Run == "" || len(ran.Treatments) == 0 {
		t.Fatalf("%+v, %v", ran, err)
	}
	steps := []plan.Step{}
	for _, n := range []string{"n1", "n2", "n3"} {
		steps = append(steps, plan.Step{ID: plan.StepID(n + "/install.write"), Action: plan.Create, Subject: subject.OfNode(n), Title: "write", May: plan.Effects(plan.Power, plan.Erase), Why: []string{n + " is new"}, Erases: "EVERYTHING on disk os of " + n + ": serial " + n})
	}
	steps[2].Why = []string{"asked for"}
	steps = append(steps, plan.Step{ID: "site/rollout.w@canary", Stage: plan.GateStage, Subject: subject.ID{Kind: subject.Site, Name: "rollout.w"}, Title: "go on", Gate: &plan.Gate{Of: "w", Wave: "canary", Nodes: []string{"n1"}, Most: 1}})
	k.SetReview(view.Review{Plan: &plan.Plan{ID: ran.ID, Sum: "sha256:ab", Steps: steps, Refusals: []plan.Refusal{{Cause: "no"}}}, Expected: []string{"an hour"}})
	second, err := k.Current(t.Context())
	if err != nil || !second.ChangesSince(first).All || second.Generation <= first.Generation {
		t.Errorf("whoever looks is not sent it: %v", err)
	}
	p := read()
	if p.Review != "waits" || p.Digest != "sha256:ab" || p.Run != "" || len(p.Erases) != 3 || !slices.Equal(p.Expected, []string{"an hour"}) || len(p.Refusals) != 1 || !slices.Equal(p.Power, []string{"n1", "n2", "n3"}) || len(p.Gates) != 1 || p.Gates[0].Wave != "canary" {
		t.Errorf("%+v", p)
	}
	if l := p.Treatments; len(l) != 3 || !slices.Equal(l[0].Of, []string{"n1", "n2"}) || !slices.Equal(l[1].Of, []string{"n3"}) {
		t.Errorf("%+v", l)
	} else if alike, alone := l[0].Steps[0].Erases, l[1].Steps[0].Erases; strings.Contains(alike, "serial") || !strings.Contains(alike, "EVERYTHING") || !strings.Contains(alone, "serial n3") {
		t.Errorf("of two nodes %q, of one %q", alike, alone)
	}
	if o, err := k.Overview(t.Context()); err != nil || o.Review == nil || o.Review.Digest != "sha256:ab" || o.Review.Approved {
		t.Errorf("%+v, %v", o.Review, err)
	}
	k.ApproveReview()
	if p := read(); p.Review != "" || p.Run != ran.Run || p.Steps != ran.Steps {
		t.Errorf("its run is on record, and shown is %+v", p)
	}
	k.SetReview(view.Review{Plan: &plan.Plan{ID: "another"}, Approved: true})
	if p := read(); p.Review != "approved" || p.ID != "another" {
		t.Errorf("before its run is on record: %+v", p)
	}
	k.EndReview()
	if p := read(); p.Review != "" || p.Run != ran.Run {
		t.Errorf("after its end: %+v", p)
	}
}

// TestSavedPlan: a plan that was saved in the site's folder can be looked at; no other file.
func TestSavedPlan(t *testing.T) {
	t.Parallel()
	dir := webtest.Kept(t, root)
	k := keeperOf(dir)
	save := func(id string) {
		t.Helper()
		var b bytes.Buffer
		if err := plan.Save(&b, &plan.Plan{ID: id, Site: webtest.Site, Steps: []plan.Step{{ID: "n1/install.write", Stage: "install", Subject: subject.OfNode("n1"), Title: "write", Erases: "disk os"}}}, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "monday.plan"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	save("p1")
	p, err := k.Plan(t.Context(), view.PlanRequest{File: "monday.plan"})
	if err != nil || p.ID != "p1" || len(p.Erases) != 1 || p.Problem == "" || !slices.Equal(p.Saved, []string{"monday.plan"}) {
		t.Errorf("%+v, %v", p, err)
	}
	save("p2, which is another")
	if p, err := k.Plan(t.Context(), view.PlanRequest{File: "monday.plan"}); err != nil || p.ID != "p2, which is another" {
		t.Errorf("%+v, %v", p, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.plan"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]errkind.Kind{"bad.plan": errkind.Invalid, "site.hcl": errkind.NotFound, "../monday.plan": errkind.NotFound, ".ironrail/state.db": errkind.NotFound} {
		if _, err := k.Plan(t.Context(), view.PlanRequest{File: name}); errkind.Of(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEvents: the newest first, and the pages together are the log backward.
func TestEvents(t *testing.T) {
	t.Parallel()
	dir := webtest.Kept(t, root)
	k := keeperOf(dir)
	var want []string
	err := onrecord.KeptEvents(filepath.Join(dir, provision.StateFolder), func(e event.Event) error {
		if e.Type != event.StepProgress && e.Type != event.FactLearned && e.Text+e.Step+e.Node != "" {
			want = append(want, string(e.Type)+e.Step+e.Text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(want)
	var got []string
	for page := 1; ; page++ {
		e, err := k.Events(t.Context(), view.EventFilter{Page: page})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range e.Events {
			got = append(got, string(x.Type)+x.Step+x.Text)
		}
		if !e.More {
			break
		}
	}
	if len(want) < view.EventsPerPage || !slices.Equal(got, want) {
		t.Errorf("%d events of %d", len(got), len(want))
	}
	of, err := k.Events(t.Context(), view.EventFilter{Node: webtest.BadGPU, Type: event.FindingMade})
	if err != nil || len(of.Events) == 0 {
		t.Fatalf("%v, %v", of, err)
	}
	for _, e := range of.Events {
		if e.Node != webtest.BadGPU || e.Type != event.FindingMade {
			t.Errorf("%+v", e)
		}
	}
}

// TestEventsAgain: a page of events is not read again at once, another is, and later it is.
func TestEventsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, provision.StateFolder, "events")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	k := keeperOf(dir)
	k.Now = func() time.Time { return now }
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "events-00000001.jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	count := func(f view.EventFilter, want int) {
		t.Helper()
		if e, err := k.Events(t.Context(), f); err != nil || len(e.Events) != want {
			t.Errorf("%+v: %d events, %v, want %d", f, len(e.Events), err, want)
		}
	}
	const one = `{"seq":1,"type":"note","node":"n1","text":"x"}` + "\n"
	write(one)
	count(view.EventFilter{}, 1)
	write(one + one)
	count(view.EventFilter{}, 1)
	count(view.EventFilter{Node: "n1"}, 2)
	now = now.Add(time.Hour)
	write(one + one + one)
	count(view.EventFilter{Node: "n1"}, 3)
	now = now.Add(-2 * time.Hour) // a clock that was set back
	write(one)
	count(view.EventFilter{Node: "n1"}, 1)
}

// run is an owner that knows one node of the site, and one that it has no more.
type run struct{ control.Backend }

func (run) Status(context.Context) (control.Status, error) {
	return control.Status{Nodes: []state.Node{{Name: webtest.Healthy, Accepted: true, AcceptedAt: time.Now()}, {Name: "n99"}}}, nil
}

// TestOtherNodes: nodes are those of the files, whatever a run began with; a run that does not
// answer yet is no reason to show nothing.
func TestOtherNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/hgx-h100"); err != nil {
		t.Fatal(err)
	}
	k := keeperOf(dir)
	now := time.Now()
	k.Now = func() time.Time { return now }
	o, err := control.AcquireFolder(k.State, "apply", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = o.Release() }()
	if o, err := k.Overview(t.Context()); err != nil || o.Nodes != 4 || !strings.Contains(o.Trouble, "does not answer yet") {
		t.Errorf("%+v, %v", o, err)
	}
	ln, err := o.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := control.Serve(ctx, ln, run{}, "test"); err != nil {
			t.Error(err)
		}
	})
	defer func() { cancel(); wg.Wait() }()
	now = now.Add(time.Hour)
	v, err := k.Overview(t.Context())
	if want := []view.Count{{State: why.Untouched, Nodes: 3}, {State: why.Accepted, Nodes: 1}}; err != nil || !slices.Equal(v.Counts, want) || v.Trouble != "" {
		t.Errorf("%v %q, %v", v.Counts, v.Trouble, err)
	}
	n, err := k.Nodes(t.Context(), view.NodeFilter{State: why.Accepted})
	if err != nil || len(n.Nodes) != 1 || n.Nodes[0].Name != webtest.Healthy {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestCurrent: a site that is as it was is not read again; one that was changed is, and what
// has changed is named.
func TestCurrent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/hgx-h100"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	k := keeperOf(dir)
	k.Now = func() time.Time { return now }
	read := func() *view.Snapshot {
		t.Helper()
		now = now.Add(time.Minute)
		s, err := k.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := read()
	if again := read(); again != first {
		t.Error("a site that is as it was is read again")
	}
	m := onrecord.Marker{Place: onrecord.Place{Folder: filepath.Join(dir, provision.StateFolder)}, Command: "test", Now: time.Now}
	if err := m.Hold(context.Background(), webtest.Healthy, "ann", "riser"); err != nil {
		t.Fatal(err)
	}
	second := read()
	c := second.ChangesSince(first)
	if second.Generation <= first.Generation || len(c.Nodes) != 1 || c.Nodes[0].Name != webtest.Healthy || c.Nodes[0].State != why.Held || !c.Counts || c.All {
		t.Errorf("%+v", c)
	}
	if c := second.ChangesSince(second); len(c.Nodes) > 0 || c.Counts || c.All {
		t.Errorf("%+v", c)
	}
	if err := m.Release(context.Background(), webtest.Healthy, "ann"); err != nil {
		t.Fatal(err)
	}
	if c := read().ChangesSince(second); len(c.Nodes) != 1 || c.Nodes[0].State != why.Untouched {
		t.Errorf("%+v", c)
	}
	if err := os.WriteFile(dir+"/broken.hcl", []byte("rack {"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s := read(); s.Trouble == "" || len(s.Inv.Nodes) != 4 {
		t.Errorf("with a broken file: %q, %d nodes", s.Trouble, len(s.Inv.Nodes))
	}
	if err := m.Hold(context.Background(), webtest.Healthy, "ann", "fan"); err != nil {
		t.Fatal(err)
	}
	if s := read(); s.Trouble == "" || len(s.ChangesSince(second).Nodes) != 0 {
		t.Errorf("after the state has changed beside the broken file: %q, %+v", s.Trouble, s.ChangesSince(second))
	}
	if err := os.Remove(dir + "/broken.hcl"); err != nil {
		t.Fatal(err)
	}
	if s := read(); s.Trouble != "" {
		t.Errorf("after it was removed: %q", s.Trouble)
	}
}

// TestWatchedFiles: a site is read again when any file changes that it is made of: one of a module, one
// that a function reads, also one that was not there.
func TestWatchedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/hgx-h100"); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("more.hcl", `locals {
  motto = trimspace(file("notes/motto.txt"))
  late  = fileexists("notes/late.txt")
}
use "extra" { source = "./extra" }
`)
	put("notes/motto.txt", "first")
	put("extra/extra.hcl", "locals { one = 1 }\n")
	now := time.Now()
	k := keeperOf(dir)
	k.Now = func() time.Time { return now }
	loads := 0
	load := k.Load
	k.Load = func() (*inventory.Inventory, error) { loads++; return load() }
	read := func() *view.Snapshot {
		t.Helper()
		now = now.Add(time.Hour)
		s, err := k.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	read()
	if read(); loads != 1 {
		t.Fatalf("%d loads of a site that is as it was", loads)
	}
	for i, c := range [][2]string{{"notes/motto.txt", "second one"}, {"extra/extra.hcl", "locals { one = 11 }\n"}, {"notes/late.txt", "here"}, {"extra/new.hcl", "locals { two = 2 }\n"}} {
		put(c[0], c[1])
		if read(); loads != i+2 {
			t.Errorf("%d loads after %s has changed", loads, c[0])
		}
	}
}

// TestFailedReading: what fails is not tried again sooner than it would be read again, and is once that
// time has passed.
func TestFailedReading(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/hgx-h100"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	k := keeperOf(dir)
	k.Now = func() time.Time { return now }
	loads := 0
	load := k.Load
	var broken error = errors.New("broken")
	k.Load = func() (*inventory.Inventory, error) {
		if loads++; broken != nil {
			return nil, broken
		}
		return load()
	}
	for range 10 {
		now = now.Add(10 * time.Millisecond)
		if _, err := k.Current(t.Context()); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	if loads != 1 {
		t.Errorf("%d tries in a tenth of a second", loads)
	}
	broken, now = nil, now.Add(time.Minute)
	if _, err := k.Current(t.Context()); err != nil || loads != 2 {
		t.Errorf("after a minute: %v, %d tries", err, loads)
	}
}

// TestSilentOwner: while an owner does not answer, the site is shown as it was, and says so; and
// no longer than that.
func TestSilentOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := webtest.Copy(dir, root+"/examples/hgx-h100"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	k := keeperOf(dir)
	k.Now = func() time.Time { return now }
	read := func() *view.Snapshot {
		t.Helper()
		now = now.Add(time.Hour)
		s, err := k.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := read()
	o, err := control.AcquireFolder(filepath.Join(dir, provision.StateFolder), "apply", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	silent := read()
	if silent.Trouble == "" || len(silent.Inv.Nodes) != 4 || !silent.ChangesSince(first).All || silent.Generation == first.Generation {
		t.Errorf("an owner that does not answer: %q, %+v", silent.Trouble, silent.ChangesSince(first))
	}
	if again := read(); again != silent {
		t.Errorf("the same trouble is another reading: %q", again.Trouble)
	}
	if err := o.Release(); err != nil {
		t.Fatal(err)
	}
	if s := read(); s.Trouble != "" {
		t.Errorf("after the owner has gone: %q", s.Trouble)
	}
}
