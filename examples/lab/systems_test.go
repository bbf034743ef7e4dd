// SPDX-License-Identifier: Apache-2.0

//go:build labfull

package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/examples/lab/internal/labtest"
)

// TestSystem: each operating system that is built is installed from power-off to
// accepted, on a BIOS and a UEFI machine, with its driver stack, the tests of its links
// and its groups, and its hand-over. Beside the lab's own, which every other test
// installs.
func TestSystem(t *testing.T) {
	for _, c := range []struct {
		name    string // of the case and its lab
		edits   []labtest.Edit
		release string // PRETTY_NAME of os-release(5) begins so
		prepare func(*labtest.Lab)
	}{
		{"debian-13", []labtest.Edit{{Old: `= "bookworm"`, New: `= "trixie"`}}, "Debian GNU/Linux 13", nil},
		{"oci", nil, "Debian GNU/Linux 12", func(l *labtest.Lab) {
			l.Edit(labtest.Edit{
				Old: "image \"debian\" \"os\" {\n  release  = \"bookworm\"\n  kernel   = \"linux-image-amd64\"\n  packages = [\"openssh-server\", \"chrony\"]\n}",
				New: fmt.Sprintf("image \"oci\" \"os\" {\n  source  = %q\n  os      = \"debian\"\n  release = \"12\"\n}", l.ContainerImage("bookworm")),
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := labtest.Up(t, labtest.Options{Name: c.name, HCL: c.edits})
			if c.prepare != nil {
				c.prepare(l)
			}
			l.Want(labtest.ExitDone, l.Outside("image", "build"))
			l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve"))
			l.Accepted("n1", "n2")
			for _, node := range []string{"n1", "n2"} {
				if got := l.OnNode(node, `. /etc/os-release; echo "$PRETTY_NAME, $(uname -r)"`); !strings.HasPrefix(got, c.release) {
					t.Errorf("%s runs %q, want %s", node, got, c.release)
				}
			}
			l.Want(labtest.ExitDone, l.Ironrail("apply", "--auto-approve")) // nothing to do
		})
	}
}
