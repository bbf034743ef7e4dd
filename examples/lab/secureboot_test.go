// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// secure gives the site hardware with Secure Boot.
func secure() []labtest.Edit {
	return []labtest.Edit{labtest.AddHardware("lab-secure", `  secure_boot  = true
  boot_timeout = "5min"
  console {
    port = "ttyS0"
    baud = 115200
  }
`)}
}

// TestSecureBoot: a machine whose firmware starts what Microsoft signed alone is brought to
// accepted, with RDMA in its kernel; the installed system says itself that Secure Boot is on and
// that its kernel is locked down.
func TestSecureBoot(t *testing.T) {
	l := labtest.Up(t, labtest.Options{Name: "secure", Machines: []string{"n11"}, HCL: secure()})
	l.Want(labtest.ExitDone, l.Outside("image", "build"))
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
	l.Accepted("n11")
	const says = "Secure Boot is on; the kernel is locked down (integrity); db has "
	said := strings.Count(events(t, l), says)
	if said != 2 { // in the ramdisk, and on the installed system
		t.Errorf("events say %d times %q", said, says)
	}
	got := l.OnNode("n11", `od -An -tu1 -j4 /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c | tr -d ' '; cat /sys/kernel/security/lockdown; lsmod | grep -c '^rdma_rxe '; uname -r`)
	if t.Logf("%s", got); !strings.HasPrefix(got, "1\nnone [integrity] confidentiality\n1\n") {
		t.Errorf("the node says\n%s", got)
	}
	l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
}
