// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/maturity"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/oob"
)

// ReadReport gathers what the state says about the site: status, measurements and
// times. digests are those of the site's images by name; version is that of this program.
func ReadReport(ctx context.Context, r state.Reader, inv *inventory.Inventory, digests map[string]string, version string, now time.Time) (report.Input, error) {
	in := report.Input{Site: inv.Site.Name, At: now.UTC(), Versions: []report.Version{{Name: "ironrail", Version: version}}, Maturity: maturity.Parts()}
	prior, err := state.ReadPrior(ctx, r)
	if err != nil {
		return in, err
	}
	if prior.Facts, err = state.ReadFacts(ctx, r); err != nil {
		return in, err
	}
	known, err := state.ReadNodes(ctx, r)
	if err != nil {
		return in, err
	}
	run, _, err := state.Get[state.Run](ctx, r, state.LastRun)
	if err != nil {
		return in, err
	}
	in.Run, in.Approvals = run.ID, run.Approvals
	in.Duration = tookOf(run.Started, run.Ended)
	made, err := readFound(ctx, r)
	if err != nil {
		return in, err
	}
	d := &describer{inv: inv, prior: prior, made: made}
	for _, n := range inv.Nodes {
		in.Nodes = append(in.Nodes, d.node(n, known[n.Name]))
		if hw, ok, _ := factOf(prior, install.HardwareFact, n.Name); ok && strings.Contains(hw.CPU.Model, "QEMU") {
			in.Caveats = append(in.Caveats, fmt.Sprintf("%s runs on an emulated CPU (%s): no figure of it is one of hardware", n.Name, hw.CPU.Model))
		}
	}
	in.Racks = reportRacks(inv)
	in.Images = reportImages(inv, in.Nodes, digests)
	in.Tests = reportTests(prior)
	in.Roles = reportRoles(prior)
	in.Untested = reportUntested(inv, prior, in.Tests)
	in.Findings = d.aboutNoNode(in.Nodes)
	in.Steps, err = reportSteps(ctx, r, inv)
	return in, err
}

// AddChain names the end of the chain of the raw outputs in dir, so that the report's
// signature holds all of them. A broken chain is said in the report.
func AddChain(in *report.Input, dir string) error {
	head, err := evidence.ReadHead(dir)
	if errkind.Of(err) == errkind.Corrupt {
		in.Untested = append(in.Untested, "that the raw outputs are as they were: "+err.Error())
		err = nil
	}
	if head.Entries > 0 {
		in.Chain = &head
	}
	return err
}

// tookOf is how long something took; zero when that is not known.
func tookOf(started, ended time.Time) report.Duration {
	if started.IsZero() || ended.IsZero() {
		return 0
	}
	return report.Duration(max(0, ended.Sub(started)))
}

// factOf reads a typed fact of a node; false when it was never learned.
func factOf[T any](prior plan.Prior, name fact.Name[T], node string) (v T, ok bool, err error) {
	f, ok := prior.Fact(name.Of(subject.OfNode(node)))
	if !ok {
		return v, false, nil
	}
	v, err = name.Get(f)
	return v, err == nil, err
}

// node is where a node stands, with what was found of it.
func (d *describer) node(n *inventory.Node, st state.Node) report.Node {
	prior := d.prior
	out := report.Node{Name: n.Name, Serial: seenSerial(prior, n.Name), Status: report.Unfinished, AcceptedAt: st.AcceptedAt}
	if !strings.EqualFold(out.Serial, n.Serial) {
		out.Declared = n.Serial
	}
	switch {
	case st.Hold != nil:
		out.Status, out.Reason = report.Held, st.Hold.Reason
	case st.Quarantine != nil:
		out.Status = report.Quarantined
		for _, f := range append([]stage.Finding{st.Quarantine.Finding}, st.Quarantine.More...) {
			out.Findings = append(out.Findings, d.finding(found{f, cmp.Or(timeOf(d.made, f), st.Quarantine.At)}))
		}
	case st.Accepted:
		out.Status = report.Accepted
	case st.Adopted:
		out.Status, out.Reason = report.Adopted, "recorded as it was found"
	case st.Run == "":
		out.Reason = "nothing was done yet"
	default:
		out.Reason = "its last steps were not reached"
	}
	if !st.Accepted {
		out.AcceptedAt = time.Time{}
	}
	sys, runs, _ := factOf(prior, install.SystemFact, n.Name)
	if runs {
		out.Kernel = sys.Kernel
	}
	if w, ok, _ := factOf(prior, install.WriteFact, n.Name); ok && w.Complete && (!runs || sys.Marker == w.Key) {
		out.Image = w.Image // what runs there came from this write
	}
	out.Drivers = reportDrivers(n, prior)
	return out
}

// reportDrivers are the versions of what was asked for; the state has all that came with
// it.
func reportDrivers(n *inventory.Node, prior plan.Prior) (all []report.Version) {
	for _, d := range n.Drivers {
		have, ok, _ := factOf(prior, driver.Packages(d.Name), n.Name)
		if !ok {
			continue
		}
		for _, name := range d.Packages {
			all = append(all, report.Version{Name: name, Version: have.Packages[name]})
		}
		if len(d.Packages) == 0 {
			all = append(all, report.Version{Name: d.Kind, Version: stackVersion(d, have)})
		}
	}
	return all
}

// seenSerial is the serial number that a node showed: in its ramdisk, or else by its
// BMC. Empty: it was never seen.
func seenSerial(prior plan.Prior, node string) string {
	if hw, ok, _ := factOf(prior, install.HardwareFact, node); ok && hw.Identity.Serial != "" {
		return hw.Identity.Serial
	}
	if id, ok, _ := factOf(prior, install.IdentityFact, node); ok && id.Serial != "" {
		return id.Serial
	}
	rep, _, _ := factOf(prior, oob.ReportFact, node)
	return rep.Serial
}

// reportImages lists the images that stand on nodes, by what was written and read back
// there, and those of the files that stand on none.
func reportImages(inv *inventory.Inventory, nodes []report.Node, files map[string]string) (out []report.Image) {
	installed := map[report.Image]int{} // by name and digest
	for _, n := range nodes {
		if of, ok := inv.Node(n.Name); ok && n.Image != "" && of.Image != nil {
			installed[report.Image{Name: of.Image.Name, Digest: n.Image}]++
		}
	}
	for image, count := range installed {
		image.Nodes = count
		if now := files[image.Name]; now != image.Digest {
			image.Files = now
		}
		out = append(out, image)
	}
	for name, digest := range files {
		if !slices.ContainsFunc(out, func(i report.Image) bool { return i.Name == name }) {
			out = append(out, report.Image{Name: name, Files: digest})
		}
	}
	slices.SortFunc(out, func(a, b report.Image) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), b.Nodes-a.Nodes, strings.Compare(a.Digest, b.Digest))
	})
	return out
}

func reportSteps(ctx context.Context, r state.Reader, inv *inventory.Inventory) (out []report.Step, err error) {
	steps, err := state.ReadSteps(ctx, r)
	for id, st := range steps {
		slash := strings.LastIndexByte(string(id.Base()), '/') // names of PDUs and switches have one too
		name, rest := string(id[:max(slash, 0)]), string(id[slash+1:])
		stageName, _, _ := strings.Cut(rest, ".")
		x := report.Step{ID: string(id), Stage: stageName, State: string(st.State), Observed: st.Observed, Started: st.Started}
		x.Took = tookOf(st.Started, st.Ended)
		if _, is := inv.Node(name); is { // else a group, or the site
			x.Node = name
		}
		out = append(out, x)
	}
	return out, err
}

// SaveReport writes the report into the state folder, as text and as JSON.
func SaveReport(folder string, in report.Input) error {
	return errors.Join(
		saveReport(filepath.Join(folder, "report.txt"), in, report.Text),
		saveReport(filepath.Join(folder, "report.json"), in, report.JSON),
	)
}

func saveReport(path string, in report.Input, write func(io.Writer, report.Input) error) error {
	var b bytes.Buffer
	if err := write(&b, in); err != nil {
		return err
	}
	tmp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(tmp, b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
