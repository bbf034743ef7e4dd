// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/lock"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// whole is a site with two roles: GPU nodes that are handed over to Kubernetes, and CPU
// nodes, which are protected, for Slurm; a hook; and packages in its lock file.
const whole = "testdata/whole"

// wholeRun is what tests see of one rehearsal of the site whole, without faults.
type wholeRun struct {
	inv     *inventory.Inventory
	sum     rehearsal.Summary
	err     error
	steps   []string
	pods    []string // nodes that the cluster puts pods on
	cluster []string // what the cluster was asked
	tokens  int      // bootstrap tokens that are left
	system  string   // os-release and the running kernel of gpu-1, and the packages that it has
}

var ofWhole = sync.OnceValue(func() *wholeRun {
	inv, diags, _ := provision.Load(whole, inventory.Options{Now: today})
	r := &wholeRun{inv: inv, tokens: -1}
	if diags.HasErrors() {
		r.err = fmt.Errorf("%v", diags)
		return r
	}
	r.sum, r.err = rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 3,
		OnPlan: func(p *plan.Plan, _ predict.Prediction) {
			for _, s := range p.Steps {
				r.steps = append(r.steps, string(s.ID))
			}
		},
		OnEnd: func(w *virtual.World, _ state.Reader) {
			if c, ok := w.Cluster("10.21.0.3:6443"); ok {
				r.pods, r.cluster, r.tokens = c.Schedulable(), c.Changes(), c.Tokens()
			}
			r.system = filesOf(w, "gpu-1", "etc/os-release", "var/lib/dpkg/status")
		}})
	return r
})

// filesOf reads files of the system disk of a node.
func filesOf(w *virtual.World, node string, names ...string) (text string) {
	n, _ := w.Node(node)
	for _, name := range names {
		f, err := n.Metal().Root().FS().Open(name)
		if err != nil {
			return err.Error()
		}
		info, err := f.Stat()
		if err != nil {
			return err.Error()
		}
		b := make([]byte, info.Size())
		if _, err := f.Read(b); err != nil {
			return err.Error()
		}
		text += string(b)
	}
	return text
}

// TestSimulatedIsListed: all steps of the site are planned and done, those of hooks and of
// protected nodes too, and the verdict lists what was simulated, with places.
func TestSimulatedIsListed(t *testing.T) {
	t.Parallel()
	r := ofWhole()
	if r.err != nil {
		t.Fatal(r.err)
	}
	if len(r.sum.Accepted) != 4 || !r.sum.AsExpected() {
		t.Errorf("accepted %v, quarantined %+v, findings %+v", r.sum.Accepted, r.sum.Quarantined, r.sum.Findings)
	}
	for _, want := range []string{"gpu-1/install.write", "gpu-1/drivers.r580", "gpu-1/validate.accept", "cpu-1/drivers.rdma", "cpu-1/fabric.data", "cpu-1/validate.after", "site/handover.batch"} {
		if !slices.Contains(r.steps, want) {
			t.Errorf("%s is not rehearsed; steps %v", want, r.steps)
		}
	}
	var got []string
	for _, s := range r.sum.Simulated {
		got = append(got, fmt.Sprintf("%s: %s (%d)", s, s.How, s.Nodes))
		if s.Place.File != "site.hcl" || s.Place.Line == 0 {
			t.Errorf("%s is at %v", s, s.Place)
		}
	}
	want := []string{
		"image hpc: a small disk that says to be Debian 13 for amd64 (2)",
		"image plain: a small disk that says to be Debian 12 for amd64 (2)",
		"packages of driver r580 for image hpc: empty, by the names and versions of 12 packages in ironrail.lock (2)",
		"packages of driver rdma for image hpc: empty, by the names that the driver asks for; what they need is not known (2)",
		"packages of driver rdma for image plain: empty, by the names that the driver asks for; what they need is not known (2)",
		"packages of driver tools for image hpc: empty, by the names that the driver asks for; what they need is not known (2)",
		"protect of role worker: lifted: there is nothing to lose (2)",
		"hook after validate: its program is not run, and taken to have ended well (4)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("simulated\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := r.inv.Nodes[0]; !n.Protect && !r.inv.Nodes[2].Protect {
		t.Error("the site itself lost its protection")
	}
}

// TestLockedPackages: nodes get the packages of the lock file at its versions, those that
// only come with others too, and the image has the kernel that they are for.
func TestLockedPackages(t *testing.T) {
	t.Parallel()
	r := ofWhole()
	if r.err != nil {
		t.Fatal(r.err)
	}
	inv := load(t, whole, nil)
	c, ok := inv.Lock.Closure("r580", "hpc")
	if !ok || len(c.Packages) != 12 {
		t.Fatalf("locked: %+v", c)
	}
	for _, p := range c.Packages {
		if !strings.Contains(r.system, "Package: "+p.Name+"\nStatus: hold ok installed\nArchitecture: amd64\nVersion: "+p.Version+"\n") &&
			!strings.Contains(r.system, "Package: "+p.Name+"\nStatus: install ok installed\nArchitecture: amd64\nVersion: "+p.Version+"\n") {
			t.Errorf("%s %s is not installed", p.Name, p.Version)
		}
	}
	if !strings.Contains(r.system, "ID=debian\nVERSION_ID=\"13\"\nVERSION_CODENAME=trixie\n") || !slices.ContainsFunc(c.Packages, func(p lock.Package) bool { return p.Name == "linux-headers-6.12.48+deb13-amd64" }) {
		t.Errorf("the system is %.200s", r.system)
	}
}

// refusals are the errors for which a rehearsal was refused.
func refusals(err error) (list hcl.Diagnostics) {
	u, _ := errors.AsType[rehearsal.Unplannable](err)
	return u.Diags
}

// TestRefusedAlike: what a plan of a site is refused for, a rehearsal is refused for, with
// the same errors at the same places, and nothing is accepted.
func TestRefusedAlike(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]string{
		"kind of image":   {`image "debian" "plain"`, `image "installer" "plain"`, `release = "12"`, `source = "http://mirror.example/x.iso"`},
		"setting":         {`protocol = "redfish"`, "protocol = \"redfish\"\n  factory { username = \"ADMIN\" }"},
		"release":         {`release = "12"`, `release = "11"`},
		"kind of driver":  {`fabric = fabric.compute`, `fabric = fabric.compute`, "  subnet_manager { run_on = [controller.head] }\n", ""},
		"handover":        {`handover "slurm" "batch" { controller = "head" }`, `handover "kubernetes" "batch" { endpoint = "10.0.0.5:6443" }`},
		"validation":      {`[driver.rdma, driver.r580, driver.tools]`, `[driver.rdma, driver.r580]`},
		"no repository":   {`  repository { url = "http://mirror.example/cuda/debian13/x86_64/" }` + "\n", ""},
		"burn-in of CPUs": {"validation \"cpu\" {\n", "validation \"cpu\" {\n  burn_in = \"30min\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inv := other(t, whole, words...)
			site, err := provision.Open(inv, provision.Options{Look: true, State: filepath.Join(t.TempDir(), "none")})
			if err != nil {
				t.Fatal(err)
			}
			_, diags, err := site.Plan(context.Background(), state.Empty{}, provision.PlanOptions{})
			if err != nil || !diags.HasErrors() {
				t.Fatalf("a plan of it is not refused: %v, %v", diags, err)
			}
			var want []string
			for _, d := range diags {
				if d.Summary != "Image is not built" && d.Severity == hcl.DiagError && !slices.Contains(want, d.Summary+d.Subject.String()) {
					want = append(want, d.Summary+d.Subject.String())
				}
			}
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 3})
			var got []string
			for _, d := range refusals(err) {
				if !slices.Contains(got, d.Summary+d.Subject.String()) {
					got = append(got, d.Summary+d.Subject.String())
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if len(want) == 0 || !slices.Equal(got, want) || len(sum.Accepted) > 0 {
				t.Errorf("a rehearsal is refused for %q (%v), and a plan for %q", got, err, want)
			}
		})
	}
}

// TestPeerRecordedIndexes: where indexes of repositories are recorded, nodes get what apt
// solves by them, with versions and with what only comes with others, and their kernel.
func TestPeerRecordedIndexes(t *testing.T) {
	peertest.Need(t, "apt-get")
	dir, index := t.TempDir(), ""
	add := func(name, version, fields string) {
		index += "Package: " + name + "\nVersion: " + version + "\nArchitecture: amd64\nMaintainer: nobody\nDescription: none\nFilename: pool/" + name + ".deb\nSize: 1\nSHA256: " + strings.Repeat("0", 64) + "\n" + fields + "\n"
	}
	add("base-files", "12.4", "Essential: yes\nPriority: required\n")
	add("linux-image-amd64", "6.1.200-1", "Depends: linux-image-6.1.0-99-amd64\n")
	for _, name := range []string{"linux-image-6.1.0-99-amd64", "openssh-server", "chrony", "ibverbs-utils", "openmpi-bin", "python3-mpi4py", "libibverbs1"} {
		add(name, "9.9-1", "")
	}
	add("rdma-core", "77.1-1", "Depends: libibverbs1\n")
	add("perftest", "4.5-1", "Depends: libibverbs1, base-files\n")
	at := filepath.Join(dir, "mirror.example/debian/dists/bookworm/main/binary-amd64")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "Packages"), []byte(index), 0o644); err != nil {
		t.Fatal(err)
	}
	system := ""
	sum, err := rehearsal.Run(context.Background(), load(t, "../../examples/lab", nil), rehearsal.Options{Seed: 1, Indexes: repo.Recorded(dir),
		OnEnd: func(w *virtual.World, _ state.Reader) { system = filesOf(w, "n1", "var/lib/dpkg/status") }})
	if err != nil || len(sum.Accepted) != 2 {
		t.Fatalf("accepted %v, quarantined %+v: %v", sum.Accepted, sum.Quarantined, err)
	}
	for _, want := range []string{"Package: rdma-core\nStatus: install ok installed\nArchitecture: amd64\nVersion: 77.1-1\n", "Package: libibverbs1\nStatus: install ok installed\nArchitecture: amd64\nVersion: 9.9-1\n", "Package: linux-image-6.1.0-99-amd64\n"} {
		if !strings.Contains(system, want) {
			t.Errorf("no %q on the node, which has\n%s", want, system)
		}
	}
	if strings.Contains(system, "Package: base-files\nStatus: install ok installed\nArchitecture: amd64\nVersion: 12.4\n") {
		t.Error("the driver stack brings what the image has")
	}
	if how := sum.Simulated[1].How; how != "empty, by the names and versions that apt solves from the indexes in "+dir {
		t.Errorf("simulated: %s", how)
	}
}
