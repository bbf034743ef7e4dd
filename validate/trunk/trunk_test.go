// SPDX-License-Identifier: Apache-2.0

package trunk

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/isolate"
)

// wire is a fabric of three leaves and two spines that a test moves the counters of by
// hand: leaf a has port 1 to spine s1 and port 2 to s2, and so on.
type wire struct {
	inv      *inventory.Inventory
	fabric   *inventory.Fabric
	counters map[fabric.SwitchPort]fabric.SwitchCounters
	err      error
}

func newWire() *wire {
	w := &wire{inv: &inventory.Inventory{}, fabric: &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "compute"}}, counters: map[fabric.SwitchPort]fabric.SwitchCounters{}}
	at := map[string]*inventory.Switch{}
	for _, name := range []string{"a", "b", "c", "s1", "s2"} {
		at[name] = &inventory.Switch{Name: name, Fabric: w.fabric, Tier: inventory.Leaf}
		if name[0] == 's' {
			at[name].Tier = inventory.Spine
		}
	}
	for i, leaf := range []string{"a", "b", "c"} {
		for j, spine := range []string{"s1", "s2"} {
			c := &inventory.Cable{From: inventory.CableEnd{Switch: at[leaf], Port: j + 1}, To: inventory.CableEnd{Switch: at[spine], Port: i + 1}}
			if j == 1 { // written the other way round
				c.From, c.To = c.To, c.From
			}
			w.inv.Cables = append(w.inv.Cables, c)
			w.counters[c.From.String()], w.counters[c.To.String()] = fabric.SwitchCounters{}, fabric.SwitchCounters{}
		}
	}
	return w
}

func (w *wire) read(context.Context, *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
	now := map[fabric.SwitchPort]fabric.SwitchCounters{}
	for at, c := range w.counters {
		now[at] = c
	}
	return now, w.err
}

// send moves the counters of a port by packets that it sent and received.
func (w *wire) send(at string, sent, received, wrong uint64) {
	c := w.counters[at]
	w.counters[at] = fabric.SwitchCounters{Sent: c.Sent + sent, Received: c.Received + received, Errors: c.Errors + wrong}
}

func TestNamePorts(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]string{
		"net/leaf-1/36":                {"net/leaf-1/36"},
		"net/leaf-1/36; net/leaf-2/40": {"net/leaf-1/36", "net/leaf-2/40"},
		"port 36, 40 of net/leaf-1, net/leaf-3; port 1, 2 of s": {"net/leaf-1/36", "net/leaf-1/40", "s/1", "s/2", "net/leaf-3/36", "net/leaf-3/40"},
	} {
		if got := namePorts(list); got != want {
			t.Errorf("%v: %q, want %q", list, got, want)
		}
	}
}

// TestLoad: a cable whose counters did not move is not tested, one that carried what
// manages a fabric neither, and one of which only one end is read is.
func TestLoad(t *testing.T) {
	t.Parallel()
	w, start := newWire(), time.Unix(0, 0)
	delete(w.counters, "s1/2") // the other end of b/1 is not read
	delete(w.counters, "s1/3")
	delete(w.counters, "c/1") // and of c/1 none is
	watch := begin(t.Context(), w.inv, w.fabric, w.read, start)
	w.send("a/1", 1_000_000, 0, 0)
	w.send("s1/1", 0, 999_000, 2000)
	w.send("b/1", 0, 50_000, 3)
	w.send("a/2", 400, 400, 0)
	w.err = errors.New("switch s1: no answer")
	l := watch.Now(t.Context(), start.Add(100*time.Second))
	got := strings.Join(l.notTested(), "\n")
	if want := "3 of 6 cables between switches of fabric compute carried no data during the test: port 2 of a, b, c\nwhether the test loaded 1 of 6 cables between switches of fabric compute is not known: switch s1: no answer"; got != want {
		t.Errorf("got %q", got)
	}
	if len(l.Worn) != 1 || l.Worn[0].String() != "s1/1 counted 2000 errors in 1m40s of load, of what comes from a" {
		t.Errorf("%+v", l.Worn)
	}
	if f := WornFindings(l.Worn, nil); len(f) != 1 || f[0].Suspects[0].Subject.Name != "a/1" {
		t.Errorf("%+v", f)
	}
	if f := WornFindings(l.Worn, []isolate.Part{{Node: "a/1", Scope: isolate.Trunk}}); len(f) != 0 {
		t.Errorf("blamed twice: %+v", f)
	}
}

// ways are what transfers do when they are run alone: "from>to spine", with "bad" behind.
type ways map[string]string

// run moves the counters of the way of a transfer.
func (w *wire) run(of ways, asked *[]string) func(context.Context, isolate.Measurement) (bool, uint64, string) {
	return func(_ context.Context, m isolate.Measurement) (bool, uint64, string) {
		*asked = append(*asked, m.From+">"+m.To)
		words := strings.Fields(of[m.From+">"+m.To])
		if len(words) == 0 {
			return true, 100_000, m.From + " to " + m.To // it fails, and sends nothing
		}
		port := words[0][1:]
		w.send(m.FromLeaf+"/"+port, 120_000, 0, 0)
		w.send(words[0]+"/"+map[string]string{"a": "1", "b": "2", "c": "3"}[m.FromLeaf], 0, 120_000, 0)
		w.send(m.ToLeaf+"/"+port, 0, 120_000, 0)
		w.send("c/1", 40, 40, 0) // somebody asks a switch
		return slices.Contains(words, "bad"), 100_000, m.From + " to " + m.To
	}
}

func flows(text string, bad bool) (list []isolate.Measurement) {
	for _, f := range strings.Fields(text) {
		from, to, _ := strings.Cut(f, ">")
		list = append(list, isolate.Measurement{From: from, To: to, FromLeaf: from[:1], ToLeaf: to[:1], Bad: bad})
	}
	return list
}

// TestSearch: the ways that counters show lead to the cable or the spine, good transfers
// acquit, and of what stays alike both are named with the test that decides.
// TestDown: a cable without a link is named by both of its ports, by the test that first sees it; what reads the
// counters later names it only where it had one before.
func TestDown(t *testing.T) {
	t.Parallel()
	w := newWire()
	well, _ := w.read(t.Context(), w.fabric)
	w.counters["a/1"], w.counters["s1/1"] = fabric.SwitchCounters{Down: true}, fabric.SwitchCounters{Down: true}
	down, _ := w.read(t.Context(), w.fabric)
	at := time.Unix(1e9, 0)
	found := WornFindings(begin(t.Context(), w.inv, w.fabric, w.read, at).Now(t.Context(), at.Add(time.Minute)).Worn, nil)
	if len(found) != 1 || found[0].Suspects[0].Subject.Name != "a/1" || found[0].Cause != "the cable a/1 has no link: a/1 has no link to s1/1" || !slices.Contains(found[0].Evidence, "s1/1 has no link to a/1") {
		t.Errorf("from the start: %+v", found)
	}
	if list := WornBetween(w.inv, w.fabric, Reading{at, well}, Reading{at.Add(time.Minute), down}); len(list) != 2 || list[0].String() != "a/1, which had a link to s1/1 before, has none" {
		t.Errorf("since the tests: %+v", list)
	}
	if list := WornBetween(w.inv, w.fabric, Reading{at, down}, Reading{at.Add(time.Minute), down}); len(list) != 0 {
		t.Errorf("as it was: %+v", list)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, bad, good string
		of              ways
		worn            string
		want, action    string
		traced          int // at most
	}{
		{"a cable", "a1>b1 c1>a2 a2>c2", "b1>c1 c2>b2 b2>a2 a1>c1", ways{"a1>b1": "s1 bad", "c1>a2": "s1 bad", "a2>c2": "s1 bad", "b1>c1": "s1", "c2>b2": "s2", "b2>a2": "s2", "a1>c1": "s2"}, "",
			"cable a/1", "Clean and reseat", 7},
		{"a spine", "a1>b1 c1>a2 b2>c2", "b1>c1 c2>b2", ways{"a1>b1": "s2 bad", "c1>a2": "s2 bad", "b2>c2": "s2 bad", "b1>c1": "s1", "c2>b2": "s1"}, "", "spine s2", "Take it out of service", 3},
		{"alike", "a1>b1 b1>a1 a2>b2", "a1>c1", ways{"a1>b1": "s1 bad", "b1>a1": "s1 bad", "a2>b2": "s1 bad", "a1>c1": "s2"}, "", "cable a/1 or cable b/1 or spine s1", "Shut the port a/1", 4},
		{"errors decide", "a1>b1 b1>a1 a2>b2", "a1>c1", ways{"a1>b1": "s1 bad", "b1>a1": "s1 bad", "a2>b2": "s1 bad", "a1>c1": "s2"}, "b/1", "cable b/1", "Clean", 4},
		{"good when it is run again", "a1>b1 c1>a2 a2>c2", "b1>c1", ways{"a1>b1": "s1", "c1>a2": "s1", "a2>c2": "s2", "b1>c1": "s1"}, "", "", "", 3},
		{"nothing gets through", "a1>b1 a2>c1 b2>a2", "", ways{}, "", "a cable up from leaf a", "Read the counters", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWire()
			var asked []string
			s := Search{Watch: begin(t.Context(), w.inv, w.fabric, w.read, time.Unix(0, 0)), Run: w.run(c.of, &asked)}
			if c.worn != "" {
				s.Worn = []Worn{{Trunk: c.worn, At: c.worn}}
			}
			bad := flows(c.bad, true)
			got := s.Find(t.Context(), bad, flows(c.good, false))
			if got.Names() != c.want || len(asked) > c.traced {
				t.Fatalf("%q after %v, want %q; %q", got.Names(), asked, c.want, got.Notes)
			}
			if c.want == "" {
				return
			}
			f := got.Finding("a transfer", s.Worn)
			if len(f.Suspects) != len(got.Suspects) || !strings.Contains(f.Action, c.action) || !strings.Contains(f.Action, "No node was taken out") || strings.Contains(f.Cause, "cannot tell") != got.Ambiguous {
				t.Errorf("%+v", f)
			}
			for _, m := range bad {
				if !got.Explains(m) {
					t.Errorf("%s to %s is not explained", m.From, m.To)
				}
			}
			if got.Explains(isolate.Measurement{From: "a1", To: "a2", FromLeaf: "a", ToLeaf: "a", Bad: true}) {
				t.Error("what stays on a leaf is explained")
			}
		})
	}
}

// TestWithoutCounters: where no switch can be asked, the leaves say what they can.
func TestWithoutCounters(t *testing.T) {
	t.Parallel()
	w := newWire()
	s := Search{Watch: begin(t.Context(), w.inv, w.fabric, nil, time.Unix(0, 0)), Run: func(context.Context, isolate.Measurement) (bool, uint64, string) {
		t.Error("a transfer was run, though nothing tells its way")
		return true, 0, ""
	}}
	if got := s.Find(t.Context(), flows("a1>b1 c1>a2 a2>c2", true), nil); got.Names() != "a cable up from leaf a" {
		t.Errorf("%q", got.Names())
	}
	if got := s.Find(t.Context(), flows("a1>b1 c1>a2 b2>c2", true), nil); got.Names() != "a spine of fabric compute" || got.Finding("x", nil).Suspects[0].Part != "spines" {
		t.Errorf("%q", got.Names())
	}
	if got := s.Find(t.Context(), flows("a1>b1", true), nil); len(got.Suspects) != 0 {
		t.Errorf("%q", got.Names())
	}
}
