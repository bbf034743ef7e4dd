// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/driver/tools"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// writtenBefore is what commit 9effd31 wrote of two sites, each in a folder with its files:
// of one that it had finished (four nodes, InfiniBand, NVLink, Slurm), and of one whose
// controller it had lost in the middle of the drivers (16 nodes, RoCE over SONiC,
// Kubernetes). They never change: they are what is on the disks of controllers.
const writtenBefore = "testdata/upgrade-9effd31/"

// ofTheRack are facts that tell one very rack from another that is built alike.
var ofTheRack = []string{"bmc.certificate", "ssh.host_key", "bmc.log_mark", "validate.log_mark"}

// unpacked unpacks such a site into a folder, where its state is at state.
func unpacked(t testing.TB, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Open(writtenBefore + name + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := unpackOne(dir, h, r); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func unpackOne(dir string, h *tar.Header, r io.Reader) error {
	name, err := filepath.Localize(path.Clean(h.Name))
	if err != nil {
		return err
	}
	to := filepath.Join(dir, strings.Replace(name, provision.StateFolder, "state", 1))
	if h.Typeflag == tar.TypeDir {
		return os.MkdirAll(to, h.FileInfo().Mode().Perm())
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, h.FileInfo().Mode().Perm())
}

// loadWithTools loads the site of a folder with a driver that brings what its tests run: in
// the time of that version it stood in the image of every virtual node. The files stay as they are.
func loadWithTools(t *testing.T, dir string) *inventory.Inventory {
	t.Helper()
	path := filepath.Join(dir, "site.hcl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	now := string(text)
	for last, block := range map[string]string{"driver.r580]": "nccl_tests", "[driver.rocm7]": "rccl_tests"} {
		if !strings.Contains(now, last) {
			continue
		}
		now = strings.Replace(now, last, strings.TrimSuffix(last, "]")+", driver.tools]", 1)
		now += "\ndriver \"tools\" \"tools\" {\n  " + block + " {\n    source = \"tests.tar.gz\"\n  }\n}\n"
	}
	if now == string(text) {
		t.Fatal("no role of the site has drivers of GPUs")
	}
	if err := os.WriteFile(path, []byte(now), 0o600); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := provision.Load(dir, inventory.Options{Now: time.Now()})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return inv
}

// withoutTools takes that driver out of a site.
func withoutTools(inv *inventory.Inventory) {
	isTools := func(d *inventory.Driver) bool { return d.Kind == tools.Name }
	without := func(list []*inventory.Driver) []*inventory.Driver { // which several blocks share
		return slices.DeleteFunc(slices.Clone(list), isTools)
	}
	inv.Drivers = without(inv.Drivers)
	for _, r := range inv.Roles {
		r.Drivers = without(r.Drivers)
	}
	for _, n := range inv.Nodes {
		n.Drivers = without(n.Drivers)
	}
}

// upgrade brings the site of a folder up with this ironrail, puts the state that the
// earlier one wrote in place of its own, and gives both to f. What the state says of
// that very rack is corrected: it was another one.
func upgrade(t *testing.T, dir string, f func(ctx context.Context, l *rehearsaltest.Later, s *state.Bolt) error) {
	t.Helper()
	inv := loadWithTools(t, dir)
	old, err := state.Open(filepath.Join(dir, "state", "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	name := func(_ context.Context, w *virtual.World) error { // that version took the first of two equal disks
		for _, n := range inv.Nodes {
			v, _ := w.Node(n.Name)
			n.InstallDisk = v.Metal().Disks()[0].Serial()
		}
		return nil
	}
	sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 5, Dir: dir, OnRack: name, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		for _, n := range inv.Nodes {
			n.InstallDisk = ""
		}
		withoutTools(inv)
		now, err := state.ReadFacts(ctx, l.Store)
		if err != nil {
			return err
		}
		l.Store = rehearsal.NewStore(old)
		fence, err := l.Claim(ctx)
		if err != nil {
			return err
		}
		var b state.Batch
		for k, fact := range now {
			_, there, err := old.Object(ctx, state.FactKey(k))
			if err != nil {
				return err
			}
			if !there || !slices.Contains(ofTheRack, k.Name) {
				continue
			}
			put, err := state.PutOf(state.FactKey(k), fact)
			if err != nil {
				return err
			}
			b.Puts = append(b.Puts, put)
		}
		if _, err := old.Append(ctx, fence, b); err != nil {
			return err
		}
		return f(ctx, l, old)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Quarantined) > 0 {
		t.Errorf("before the upgrade: %+v", sum)
	}
}

// isOfLaterRack reports whether a change is a package that the nodes of racks have since
// then: the kernel's, and those that bring what tests run.
func isOfLaterRack(c drift.Change) bool {
	return c.Kind == wire.ItemPackages && (strings.HasPrefix(c.Name, "linux-image-") || slices.Contains([]string{"fio", "ironrail-nccl-tests", "openmpi-bin", "python3-mpi4py"}, c.Name))
}

// touched counts what was done to the nodes of a rack.
func touched(w *virtual.World, inv *inventory.Inventory) (erased, powered int) {
	for _, n := range inv.Nodes {
		v, _ := w.Node(n.Name)
		c := v.Chassis().Counters()
		powered += c.PowerOns + c.Resets
		for _, d := range v.Metal().Disks() {
			erased += d.Counters().Erases
		}
	}
	return erased, powered
}

// sameReport compares the report of a state with the one that was written then: nothing
// of it is lost. What is only in the new one is new.
func sameReport(ctx context.Context, t *testing.T, l *rehearsaltest.Later, dir string) {
	t.Helper()
	in, err := l.Site.Report(ctx, l.Store, "test", l.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	var then, now any
	var b bytes.Buffer
	if err = report.JSON(&b, in); err == nil {
		err = json.Unmarshal(b.Bytes(), &now)
	}
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(kept, &then)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range lost(then, now, "") {
		if at != "/at" && at != "/versions/0/version" { // when, and by which ironrail
			t.Errorf("the report lost %s", at)
		}
	}
}

// rank are places that tell where a kind of test stands among all kinds, of which there are more
// now. The tests themselves are compared in this order.
var rank = regexp.MustCompile(`^/tests/\d+/rank$`)

// lost are the places in a JSON value that another has not, or has otherwise. The lists of
// what is not tested or proven may have more: this version tests more.
func lost(then, now any, at string) (places []string) {
	switch a := then.(type) {
	case map[string]any:
		b, _ := now.(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(a)) {
			places = append(places, lost(a[k], b[k], at+"/"+k)...)
		}
		return places
	case []any:
		b, _ := now.([]any)
		if at == "/not_proven" || at == "/untested" {
			b = slices.DeleteFunc(slices.Clone(b), func(v any) bool { return !slices.Contains(a, v) })
		}
		if len(a) != len(b) {
			return []string{at}
		}
		for i := range a {
			places = append(places, lost(a[i], b[i], fmt.Sprintf("%s/%d", at, i))...)
		}
		return places
	}
	if was, ok := then.(float64); ok && rank.MatchString(at) {
		if is, ok := now.(float64); ok && is >= was {
			return nil
		}
	}
	if then != now {
		return []string{at}
	}
	return nil
}

// TestUpgradeOfFinishedSite: a site that an earlier ironrail finished is opened and
// reported by this one, which installs and tests nothing again, finds no drift, and
// knows on which disks the nodes are.
func TestUpgradeOfFinishedSite(t *testing.T) {
	t.Parallel()
	dir := unpacked(t, "finished")
	upgrade(t, dir, func(ctx context.Context, l *rehearsaltest.Later, s *state.Bolt) error {
		sameReport(ctx, t, l, dir)
		erased, powered := touched(l.World, l.Site.Inv)
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		// Slurm's files say since then which partition is the default.
		if got := ids(p); len(p.Refusals) > 0 || len(p.Offers) > 0 || !slices.Equal(got, []string{"site/handover.prod"}) {
			t.Errorf("planned %v, refused %v, offered %v", got, p.Refusals, p.Offers)
		}
		res, err := l.Apply(ctx, p)
		if err != nil {
			return err
		}
		if res.Outcome != state.RunDone {
			t.Errorf("%+v", res)
		}
		if p, err = l.Plan(ctx, provision.PlanOptions{}); err != nil || !p.Empty() {
			t.Errorf("afterwards: %v, %v", ids(p), err)
		}
		d, err := l.Drift(ctx, observe.DriftOptions{})
		for _, c := range d.Changes {
			if c.Name != "install" && !isOfLaterRack(c) { // the marker on the disk is that of this rack's own install
				t.Errorf("drift: %+v", c)
			}
		}
		if err != nil || len(d.Unknown) > 0 {
			t.Errorf("drift: %+v, %v", d.Unknown, err)
		}
		if e, o := touched(l.World, l.Site.Inv); e != erased || o != powered {
			t.Errorf("%d disks erased and %d times power, before %d and %d", e, o, erased, powered)
		}
		name := l.Site.Inv.Nodes[1].Name
		if p, err = l.Plan(ctx, provision.PlanOptions{Replace: []string{name}}); err != nil || len(p.Refusals) > 0 {
			t.Errorf("--replace: %v, %v", p.Refusals, err)
		}
		f, _, err := state.Get[fact.Fact](ctx, s, state.FactKey(install.DiskFact.Of(subject.OfNode(name))))
		if err != nil {
			return err
		}
		disk, err := install.DiskFact.Get(f)
		if err != nil {
			return err
		}
		for _, st := range p.Steps {
			if st.May.Has(plan.Erase) && (disk.Serial == "" || !strings.Contains(st.Erases, disk.Serial)) {
				t.Errorf("--replace erases %q; %s was installed on disk %s", st.Erases, name, disk.Serial)
			}
		}
		return nil
	})
}

// TestUpgradeInTheMiddle: a run that an earlier ironrail left in the middle is continued
// by this one to its end; what was done is not done again.
func TestUpgradeInTheMiddle(t *testing.T) {
	t.Parallel()
	dir := unpacked(t, "killed")
	upgrade(t, dir, func(ctx context.Context, l *rehearsaltest.Later, s *state.Bolt) error {
		sameReport(ctx, t, l, dir)
		erased, powered := touched(l.World, l.Site.Inv)
		p, run, err := state.ReadUnfinishedPlan(ctx, s)
		if err != nil {
			return err
		}
		before, err := state.ReadSteps(ctx, s)
		if err != nil {
			return err
		}
		res, err := l.Apply(ctx, p)
		if err != nil {
			return err
		}
		checkResumed(ctx, t, s, run.ID, before)
		accepted := 0
		for _, n := range res.Nodes {
			if n.Accepted {
				accepted++
			} else {
				t.Errorf("%s: %+v %+v", n.Name, n.Finding, n.Cause)
			}
		}
		if res.Outcome != state.RunDone || accepted != 16 {
			t.Errorf("%s, %d of 16 accepted", res.Outcome, accepted)
		}
		if e, o := touched(l.World, l.Site.Inv); e != erased || o != powered {
			t.Errorf("%d disks erased and %d times power, before %d and %d", e, o, erased, powered)
		}
		return nil
	})
}

// checkResumed compares the steps of a state with those before it was continued.
func checkResumed(ctx context.Context, t *testing.T, s state.Reader, first string, before map[plan.StepID]state.Step) {
	t.Helper()
	after, err := state.ReadSteps(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	for id, was := range before {
		if was.State != state.StepIsDone {
			continue
		}
		done++
		if is := after[id]; is.Run != first || !is.Ended.Equal(was.Ended) {
			t.Errorf("%s was done at %s and done again at %s", id, was.Ended, is.Ended)
		}
	}
	if done < 100 {
		t.Errorf("only %d steps were done before", done)
	}
}
