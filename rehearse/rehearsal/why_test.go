// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/status"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

var updateWhy = flag.Bool("update-why", false, "write what why says of each fault to testdata/why")

// whyTimes is when a node with each kind of fault is asked about while the run is
// active, from the start of the run: when it is stuck, where the fault makes it
// wait. Zero: it never waits for long.
var whyTimes = map[fault.Kind][]time.Duration{
	fault.BMCDead:          {2 * time.Second},
	fault.BMCLocked:        {},
	fault.BMCWrongPassword: {},
	fault.BMCWriteLost:     {},
	fault.BMCSwapped:       {},
	fault.DHCPLoss:         {time.Minute, 14 * time.Minute},
	fault.UntaggedPort:     {6 * time.Minute},
	fault.HTTPStall:        {12 * time.Minute},
	fault.WrongSerial:      {},
	fault.MissingDIMM:      {},
	fault.MissingNIC:       {},
	fault.DiskWriteError:   {},
	fault.KernelHang:       {18 * time.Minute},
	fault.RepoGone:         {},
	fault.DriverMismatch:   {},
	fault.CableSwap:        {},
	fault.DegradedLink:     {},
	fault.BadUplink:        {},
	fault.BadLeaf:          {},
	fault.SlowTrunk:        {},
	fault.TrunkErrors:      {},
	fault.DeadTrunk:        {},
	fault.BadSpine:         {},
	fault.SMDead:           {},
	fault.OtherSM:          {},
	fault.NVLinkDown:       {},
	fault.NVLinkUnseated:   {},
	fault.IMEXConfig:       {},
	fault.IMEXChannel:      {},
	fault.NoTime:           {},
	fault.HighBER:          {},
	fault.SlowNIC:          {},
	fault.LinkDown:         {},
	fault.MissingGPU:       {},
	fault.PCIeWidth:        {},
	fault.GPURowRemap:      {},
	fault.GPUXid:           {},
	fault.OddFirmware:      {},
	fault.NICSettingLost:   {},
	fault.PSULost:          {},
	fault.ShelfSupply:      {},
	fault.DeadFan:          {},
	fault.WarmAir:          {},
	fault.RailConfig:       {},
	fault.WeakHBM:          {},
	fault.HotGPU:           {},
	fault.SlowGPU:          {},
	fault.DeadCores:        {},
	fault.WrongResults:     {},
	fault.PCIeErrors:       {},
	fault.NVLinkErrors:     {},
	fault.DIMMErrors:       {},
	fault.WrongGPU:         {},
	fault.LessHBM:          {},
	fault.PCIeSpeed:        {},
	fault.WrongCPU:         {},
	fault.SMTOff:           {},
	fault.TPMOff:           {},
	fault.SecureBootOff:    {},
	fault.ModuleKeyMissing: {},
	fault.NUMASplit:        {},
	fault.SmallDIMM:        {},
	fault.SlowDIMM:         {},
	fault.SlowMemory:       {},
	fault.SlowCPU:          {},
	fault.SlowDisk:         {},
	fault.SlowNetwork:      {},
	fault.PathMTU:          {},
	fault.WornDisk:         {},
	fault.WrongNIC:         {},
	fault.WrongDisk:        {},
	fault.WrongMTU:         {},
	fault.WrongOptic:       {},
	fault.PDUTrip:          {11*time.Minute + 30*time.Second},
	fault.OtherDHCP:        {time.Minute},
	fault.ControllerKill:   {12 * time.Minute},
}

// witnessed collects what why is told and says in a rehearsal. Its methods are
// called on virtual time.
type witnessed struct {
	t     *testing.T
	nodes []string // who is asked about
	// switches, and ports of switches, are asked about after the run.
	switches []string
	// coarse says that minutes are drawn by chance as well: which of many nodes may
	// boot first.
	coarse bool

	mu      sync.Mutex // guards what follows
	seen    []event.Event
	answers []string
	began   time.Time // of the first run
}

// asked adds to o what collects the answers of why.
func (w *witnessed) asked(o rehearsal.Options, at []time.Duration) rehearsal.Options {
	o.OnEvent = func(e event.Event) {
		if e.Type == event.Evidence {
			w.mu.Lock()
			w.seen = append(w.seen, e)
			w.mu.Unlock()
		}
	}
	o.OnRun = func(ctx context.Context, ask control.Backend) {
		start := w.start()
		for _, d := range at {
			if d < time.Since(start) {
				continue // a run before this one was asked
			}
			if !pause(ctx, d-time.Since(start)) {
				return
			}
			w.ask(ctx, ask, d)
		}
	}
	o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		for _, n := range w.nodes {
			y, err := status.ReadNode(ctx, l.Site.Inv, l.Store, n)
			if err != nil {
				return err
			}
			site, err := status.ReadSite(ctx, l.Site.Inv, l.Store, time.Now())
			if err != nil {
				return err
			}
			y.Evidence = w.evidence(n)
			y.Alike = why.FindSimilarNodes(n, why.SummariseNodes(site), status.ListTraits(l.Site.Inv), w.now())
			w.say("after the run", why.ExplainNode(y, false, w.now()).FullText(w.now()))
		}
		for _, name := range w.switches {
			y, err := status.ReadSwitch(ctx, l.Site.Inv, l.Store, name)
			if err != nil {
				return err
			}
			w.say("after the run, of "+name, why.ExplainSwitch(y, false, w.now()).FullText(w.now()))
		}
		return nil
	}
	return o
}

// start is when the first run began.
func (w *witnessed) start() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began.IsZero() {
		w.began = time.Now()
	}
	return w.began
}

// now is the present in a zone in which the first run began at midnight: no text
// depends on when the test is run.
func (w *witnessed) now() time.Time {
	b := w.start().UTC()
	return time.Now().In(time.FixedZone("rehearsal", -(b.Hour()*3600 + b.Minute()*60 + b.Second())))
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(max(0, d)):
		return true
	}
}

// ask asks as `ironrail why` does while a run is active.
func (w *witnessed) ask(ctx context.Context, b control.Backend, at time.Duration) {
	for i, n := range w.nodes {
		if i > 0 && !pause(ctx, 2500*time.Millisecond) { // not in the very moment in which it has got its power
			return
		}
		y, err := b.Why(ctx, n)
		if err != nil {
			w.t.Error(err)
			return
		}
		told := why.ExplainNode(y, true, w.now())
		text := told.FullText(w.now())
		if told.Answer.ShouldAskBMC() {
			l, err := b.Look(ctx, n)
			if err == nil {
				y, err = b.Why(ctx, n)
			}
			if err != nil {
				w.t.Error(err)
				return
			}
			y.Look = &l
			text += why.ExplainNode(y, true, w.now()).LiveText(told.Answer, w.now())
		}
		w.say("while the run is active, "+at.String()+" after its start", text)
	}
}

// coarseMasks take minutes out of a text whose seconds are out already.
var coarseMasks = []struct {
	of *regexp.Regexp
	by string
}{
	{regexp.MustCompile(`\b0[01]:\d\d:ss`), "00:mm:ss"},
	{regexp.MustCompile(`done after \d+m(\d+s)?`), "done after MINUTES"},
	{regexp.MustCompile(`\(\d+h\d+m(\d+s)?\)`), "(SINCE)"},
	{regexp.MustCompile(`in \d+m(\d+s)? of load`), "in MINUTES of load"},
}

// evidence is what the command line reads from the log of events.
func (w *witnessed) evidence(node string) (out []event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.seen {
		if e.Node == node || e.Node == "" {
			out = append(out, e)
		}
	}
	return out
}

func (w *witnessed) say(when, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, "=== "+when+"\n\n"+text)
}

// golden compares what was said with the file of that name.
func (w *witnessed) golden(name string) {
	w.t.Helper()
	path := filepath.Join("testdata", "why", name+".txt")
	got := written(strings.Join(w.answers, "\n"))
	if w.coarse {
		for _, m := range coarseMasks {
			got = m.of.ReplaceAllString(got, m.by)
		}
	}
	if *updateWhy {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatalf("what why says of %s is not written down: %v; run with -update-why, and read it as the engineer at night does", name, err)
	}
	if got != string(want) {
		w.t.Errorf("%s differs; run with -update-why and read the difference as the engineer at night does.\n%s", path, firstDifference(got, string(want)))
	}
}

// ordered puts lines whose order is chance in one order: a BMC's before the journal's
// of the same second, and those of a boot in the order of its stages within a minute,
// since servers of different protocols write their logs side by side. Whether equal
// lines of TFTP came one after the other is chance as well, and whether an agent asks
// once more between the end of its attempt and that of its ramdisk.
func ordered(text string) string {
	lines := strings.Split(repeated.ReplaceAllString(text, "$1"), "\n")
	together(lines, len("  00:00:00"), func(list []string) {
		slices.SortStableFunc(list, func(a, b string) int { return fromBMC(a) - fromBMC(b) })
	})
	together(lines, len("  00:00"), sortBoot)
	seen := ""
	lines = slices.DeleteFunc(lines, func(l string) bool {
		same := l == seen && strings.Contains(l, " tftp ")
		seen = l
		return same || strings.Contains(l, "agent ended: GET /agent/v1/task: ")
	})
	return strings.Join(lines, "\n")
}

// together calls f with each run of moments that are equal in their first n bytes.
func together(lines []string, n int, f func([]string)) {
	for i := 0; i < len(lines); {
		j := i + 1
		at := momentOf.FindString(lines[i])
		for at != "" && j < len(lines) && momentOf.MatchString(lines[j]) && lines[j][:n] == at[:n] {
			j++
		}
		f(lines[i:j])
		i = j
	}
}

func fromBMC(line string) int {
	if strings.Contains(line, "  BMC ") {
		return 0
	}
	return 1
}

// bootStages are what lines of a boot contain, in the order in which a node boots.
var bootStages = []string{": a PXE firmware", " tftp ", ": iPXE", " ipxe script", " http "}

// bootStage is the place of a line of a boot among the stages; -1: it is none.
func bootStage(line string) int {
	return slices.IndexFunc(bootStages, func(s string) bool { return isBoot(line, s) })
}

// sortBoot sorts the lines of a boot among the places that they have.
func sortBoot(lines []string) {
	var at []int
	var boot []string
	for i, l := range lines {
		if bootStage(l) >= 0 {
			at, boot = append(at, i), append(boot, l)
		}
	}
	slices.SortStableFunc(boot, func(a, b string) int {
		if c := bootStage(a) - bootStage(b); c != 0 || !isBoot(a, " tftp ") {
			return c
		}
		return strings.Compare(afterMoment(a), afterMoment(b))
	})
	for i, l := range boot {
		lines[at[i]] = l
	}
}

func isBoot(line, stage string) bool {
	return strings.Contains(line, "  boot  ") && strings.Contains(line, stage)
}

func afterMoment(line string) string { return line[len(momentOf.FindString(line)):] }

// written is a text without what is drawn by chance: names of boot attempts,
// digests of what is made with keys of this run, and the seconds of times, since a
// BMC is asked every two of them whether it has done what it was told.
func written(text string) string {
	text = ordered(text)
	for _, m := range masks {
		text = m.of.ReplaceAllString(text, m.by)
	}
	return sideBySide(text)
}

// sideBySide sorts what is said of several fabrics one line after another: a node's
// fabrics are set up at the same time.
func sideBySide(text string) string {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		j := i
		for j < len(lines) && ofFabric.MatchString(lines[j]) {
			j++
		}
		slices.Sort(lines[i:j])
		i = max(i, j-1)
	}
	return strings.Join(lines, "\n")
}

var (
	momentOf = regexp.MustCompile(`^  \d\d:\d\d:\d\d  `)
	ofFabric = regexp.MustCompile(`^  \d\d:(?:\d\d|mm):ss  journal  (?:fabric\.|configure fabric )`)
	repeated = regexp.MustCompile(`( tftp .*) \(\d+ times, last [\d:]+\)`)
	masks    = []struct {
		of *regexp.Regexp
		by string
	}{
		{regexp.MustCompile(`(r0\d-u\d\d)-[0-9a-f]{16}`), "$1-ATTEMPT"},
		{regexp.MustCompile(`sha256:[0-9a-f]{12}`), "sha256:DIGEST"},
		{regexp.MustCompile(`evidence/[0-9a-f]{2}/[0-9a-f]{64}`), "evidence/DIGEST"},
		{regexp.MustCompile(`  seen  \d\d:\d\d:\d\d `), "  seen  TIME "},     // in UTC
		{regexp.MustCompile(`(^|[ (])00:(2[6-9]|3\d):\d\d`), "${1}00:mm:ss"}, // a search among pairs of nodes has ended
		{regexp.MustCompile(`(^|[ (])(\d\d:\d\d):\d\d\b`), "${1}${2}:ss"},
		{regexp.MustCompile(`\((\d+m)?\d+s\)`), "(SINCE)"},
		{regexp.MustCompile(`after \d+s`), "after SECONDS"},
		{regexp.MustCompile(`(validate\.burn .* after) \d+m`), "$1 MINUTES"}, // rounded, and half a minute is near
		{regexp.MustCompile(`in \d+s of load`), "in SECONDS of load"},        // it is rounded, and some milliseconds differ
	}
)

// firstDifference shows the first line that differs.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return "got  " + strings.Join(g[min(i, len(g)):min(i+1, len(g))], "") + "\nwant " + strings.Join(w[min(i, len(w)):min(i+1, len(w))], "")
		}
	}
	return "nothing"
}

// concerned are the nodes that a fault of the table below is asked about.
func concerned(f fault.Fault) []string {
	if f.Node == "" {
		return []string{"r01-u09"}
	}
	nodes := []string{f.Node}
	if f.Kind == fault.BMCDead {
		nodes = append(nodes, "r01-u17") // what the others wait for meanwhile
	}
	return nodes
}

// roomy gives each PDU ten times its current, so that no node waits to be switched
// on: which of them would, is chance.
func roomy(inv *inventory.Inventory) *inventory.Inventory {
	for _, r := range inv.Racks {
		for _, p := range r.PDUs {
			p.Current *= 10
		}
	}
	return inv
}

// TestWhyOfWhatAnOperatorDoes holds a node, then drains the run, and asks.
func TestWhyOfWhatAnOperatorDoes(t *testing.T) {
	t.Parallel()
	w := &witnessed{t: t, nodes: []string{"r01-u09", "r01-u17"}}
	o := w.asked(rehearsal.Options{Seed: 7}, nil)
	o.OnRun = func(ctx context.Context, ask control.Backend) {
		w.start()
		pause(ctx, 2*time.Minute)
		if err := ask.Hold(ctx, "r01-u09", control.HoldRequest{By: "ann", Reason: "the riser is out"}); err != nil {
			t.Error(err)
		}
		pause(ctx, time.Minute)
		if err := ask.Drain(ctx); err != nil {
			t.Error(err)
		}
		pause(ctx, time.Second)
		w.ask(ctx, ask, 3*time.Minute)
	}
	if _, err := rehearsal.Run(context.Background(), roomy(load(t, demo, nil)), o); err != nil {
		t.Fatal(err)
	}
	w.golden("operator")
}

// TestEveryKindHasTimes: a new kind of fault says when why is asked about it.
func TestEveryKindHasTimes(t *testing.T) {
	t.Parallel()
	for _, r := range fault.Rows() {
		if _, ok := whyTimes[r.Kind]; !ok {
			t.Errorf("why is never asked about %s", r.Kind)
		}
	}
	files, err := filepath.Glob("testdata/why/*.txt")
	if err != nil || !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(f, "dhcp-loss") }) {
		t.Errorf("%v %v", files, err)
	}
}
