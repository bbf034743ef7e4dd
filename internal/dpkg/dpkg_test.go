// SPDX-License-Identifier: Apache-2.0

package dpkg

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// What dpkg's own program lists as installed on this machine is what is read of its
// status file.
func TestPeerInstalled(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "dpkg-query")
	out, err := exec.Command("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version} ${Architecture} ${Maintainer}\n").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(out)) {
		if p, ok := strings.CutPrefix(line, "installed "); ok {
			want = append(want, strings.TrimSpace(p))
		}
	}
	f, err := os.Open("/var/lib/dpkg/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := Installed(f)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list {
		got = append(got, strings.TrimSpace(p.Name+" "+p.Version+" "+p.Arch+" "+p.Maintainer))
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(got) < 50 || !slices.Equal(got, want) {
		t.Errorf("%d packages; dpkg-query lists %d", len(got), len(want))
	}
}

// A package whose settings alone are left is not installed; a last stanza may end
// without an empty line.
func TestInstalled(t *testing.T) {
	t.Parallel()
	list, err := Installed(strings.NewReader(`Package: adduser
Status: install ok installed
Architecture: all
Version: 3.134
Description: add and remove users
 Version: of a line that goes on, no field

Package: gone
Status: deinstall ok config-files
Version: 1
Architecture: amd64

Package: libgcc-s1
Status: install ok installed
Source: gcc-12 (12.2.0-14)
Version: 12.2.0-14
Architecture: amd64`))
	want := []Package{{Name: "adduser", Version: "3.134", Arch: "all"}, {Name: "libgcc-s1", Version: "12.2.0-14", Arch: "amd64", Source: "gcc-12 (12.2.0-14)"}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%+v, %v; want %+v", list, err, want)
	}
}
