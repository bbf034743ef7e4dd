// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// TestMounts mounts an export of a real NFS server on two machines: it is there when they are
// accepted and after a restart. An export that the server does not have keeps its nodes out with
// what mount.nfs says, and a server that is gone is found by drift.
func TestMounts(t *testing.T) {
	nodes := []string{"n2", "n5"}
	const role = "  validation = validation.lab\n  handover   = handover.lab\n"
	const scratch = "  mount \"/scratch\" {\n    type    = \"nfs\"\n    source  = \"10.77.0.2:/scratch\"\n    options = [\"vers=4.1\"]\n  }\n"
	l := labtest.Up(t, labtest.Options{Name: "mounts", Machines: nodes, HCL: []labtest.Edit{
		{Old: `"openssh-server", "chrony"]`, New: `"openssh-server", "chrony", "nfs-common"]`},
		{Old: role, New: role + scratch},
	}})
	l.Edit(labtest.Edit{Old: slurmHandover, New: fmt.Sprintf("handover \"exec\" \"lab\" {\n  command = [%q]\n}", l.Program("handover.sh", counting))})
	server := l.ServeNFS("10.77.0.2", "scratch")
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	l.OnNode("n2", "echo from n2 >/scratch/shared && sync")
	if got := l.OnNode("n5", "cat /scratch/shared"); got != "from n2\n" {
		t.Errorf("n5 reads %q", got)
	}
	if b, err := os.ReadFile(filepath.Join(server.Folder, "shared")); err != nil || string(b) != "from n2\n" {
		t.Errorf("the server has %q, %v", b, err)
	}
	l.Reboot("n5")
	l.OnNode("n5", "findmnt --noheadings --types nfs4 /scratch && cat /scratch/shared")
	if p := l.Plan("--refresh"); len(p.Steps) != 0 {
		t.Errorf("there is something to do: %+v", p.Steps)
	}

	const other = "  mount \"/other\" {\n    type   = \"nfs\"\n    source = \"10.77.0.2:/other\"\n  }\n"
	l.Edit(labtest.Edit{Old: scratch, New: scratch + other})
	l.Want(labtest.ExitFailed, l.Ironrail("apply", "--auto-approve")) // the rollout stops after its canary
	q := l.Why("n2").Node.Quarantine                                  // the canary; n5 was left as it is
	if q == nil || !strings.Contains(q.Finding.Cause, "/other is not mounted: mount.nfs: ") || !strings.Contains(q.Finding.Action, "Look at the server") || len(q.Finding.Evidence) < 2 {
		t.Errorf("n2: %+v", q)
	}
	l.Edit(labtest.Edit{Old: other, New: ""})
	l.Want(labtest.ExitDone, l.Ironrail("release", "n2"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted(nodes...)
	l.OnNode("n2", "test ! -e /etc/systemd/system/other.mount && test ! -e /etc/systemd/system/remote-fs.target.wants/other.mount")

	server.Stop()
	if got := l.Ironrail("drift", "--kind", "settings"); got.Code == labtest.ExitDone || !strings.Contains(got.Stdout, "/scratch is mounted and does not answer") {
		t.Errorf("drift does not see a server that is gone: %s", got)
	}
}
