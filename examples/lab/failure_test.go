// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
	"github.com/ironrail/ironrail/provision/install"
)

// end is where text is appended to site.hcl: behind its last block.
const lastBlock = "rack \"lab\" {"

// extra puts blocks into site.hcl.
func extra(blocks string) labtest.Edit {
	return labtest.Edit{Old: lastBlock, New: blocks + "\n\n" + lastBlock}
}

// failure is one thing that is wrong with one node. The other nodes must be
// accepted all the same.
type failure struct {
	name      string
	machines  []string // default: n1 and n2
	hcl       []labtest.Edit
	break_    func(*labtest.Lab)               // before apply
	meanwhile func(*labtest.Lab, *labtest.Run) // while it runs
	cause     string                           // words of the verdict about n2
	action    string
	untouched bool // nothing was written to its disk
}

func failures() []failure {
	return []failure{
		{
			name:  "password",
			hcl:   []labtest.Edit{extra("override \"n2\" {\n  reason = \"under test\"\n  bmc {\n    password = secret(\"env:LAB_WRONG_PASSWORD\")\n  }\n}")},
			cause: "password", action: "password", untouched: true,
		},
		{
			name:   "silent",
			break_: func(l *labtest.Lab) { l.Fault("n2", "unplug") },
			cause:  "never asked for an address", action: "cable", untouched: true,
		},
		{
			name: "digest",
			hcl: []labtest.Edit{extra("image \"debian\" \"other\" {\n  release  = \"bookworm\"\n  kernel   = \"linux-image-amd64\"\n  packages = [\"openssh-server\", \"chrony\"]\n" +
				"  digest   = \"sha256:" + strings.Repeat("0", 64) + "\"\n}\n\noverride \"n2\" {\n  reason = \"under test\"\n  image  = image.other\n}")},
			cause: "digest", action: "digest", untouched: true,
		},
		{
			name: "chunk",
			meanwhile: func(l *labtest.Lab, r *labtest.Run) {
				r.Until("the write of n2", writing("n2"))
				l.CorruptWire("10.77.0.12", labtest.Always)
			},
			cause: "corrupt", action: "image verify",
		},
		{
			name:   "nic",
			break_: func(l *labtest.Lab) { l.Fault("n2", "missing-nic") },
			cause:  "the hardware is not what hardware.lab-uefi says", action: "NIC", untouched: true,
		},
		{
			name:     "rail",
			machines: []string{"n1", "n2", "n3"},
			hcl:      []labtest.Edit{{Old: "max_erase = 2", New: "max_erase = 3"}},
			break_:   func(l *labtest.Lab) { l.Fault("n2", "slow-rail") },
			cause:    "rail 0", action: "cable",
		},
	}
}

// writing is true once the image is being written to a node's disk.
func writing(node string) func(event.Event) bool {
	return func(e event.Event) bool {
		return e.Type == event.StepProgress && e.Step == node+"/install.write" && e.Text == "write" && e.Done > 0
	}
}

// TestFailure breaks one thing of n2 at a time.
func TestFailure(t *testing.T) {
	t.Setenv("LAB_WRONG_PASSWORD", "not-the-password")
	for _, f := range failures() {
		t.Run(f.name, func(t *testing.T) {
			l := labtest.Up(t, labtest.Options{Name: f.name, Machines: f.machines, HCL: f.hcl})
			if f.break_ != nil {
				f.break_(l)
			}
			run := l.Start("apply", "--auto-approve")
			if f.meanwhile != nil {
				f.meanwhile(l, run)
			}
			l.Want(labtest.ExitSomeFailed, run.Wait())
			l.Quarantined("n2", f.cause, f.action)
			for _, n := range append([]string{"n1"}, f.machines...) {
				if n != "n2" {
					l.Accepted(n)
				}
			}
			if f.untouched {
				l.Untouched("n2")
			}
		})
	}
}

// TestSwappedBMCs has the BMC addresses of two nodes swapped in the CSV. No disk
// may be touched: each node answers as another than its BMC's row says.
func TestSwappedBMCs(t *testing.T) {
	l := labtest.Up(t, labtest.Options{Name: "swapped", CSV: labtest.Swap(labtest.ColumnBMC, "n1", "n2")})
	l.Want(labtest.ExitFailed, l.Ironrail("apply", "--auto-approve"))
	for _, n := range []string{"n1", "n2"} {
		l.Quarantined(n, "this is the BMC of another node", "row")
	}
	l.Untouched("n1", "n2")
	for what, empty := range map[string]string{"sel": "the log is empty", "sensors": "the BMC shows no sensors"} { // of this simulator
		res := l.Ironrail(what, "n2")
		if l.Want(labtest.ExitDone, res); res.Stdout != "n2: "+empty+"\n" {
			t.Errorf("%s: %s", what, res)
		}
	}
}

// TestCorruptedOnce has one packet of the image corrupted on the wire: the chunk
// is fetched again and the node is accepted.
func TestCorruptedOnce(t *testing.T) {
	l := labtest.Up(t, withData(labtest.Options{Name: "once"}))
	unchanged := fillData(l)
	run := l.Start("apply", "--auto-approve")
	run.Until("the write of n2", writing("n2"))
	l.CorruptWire("10.77.0.12", labtest.Once)
	l.Want(labtest.ExitDone, run.Wait())
	l.Accepted("n1", "n2")
	unchanged()
	l.SamePicture("testdata/accepted.txt") // that of a run which nothing disturbed
	if n := l.Corrupted(); n != 1 {
		t.Fatalf("%d packets were corrupted, want 1", n)
	}
	if w := labtest.Fact(l, install.WriteFact, "n2"); w.Result.Retried != 1 || !w.Complete {
		t.Errorf("n2 fetched %d chunks again, want 1: %+v", w.Result.Retried, w)
	}
}
