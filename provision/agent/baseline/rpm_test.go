// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

const listed = "bash\t5.1.8-9.el9\tx86_64\ngpg-pubkey\t350d275d-6279464b\tnoarch\nkernel-core\t5.14.0-570.el9\tx86_64\nkernel-core\t5.14.0-503.el9\tx86_64\n" +
	"rpm\t4.16.1.3-37.el9\tx86_64\nglibc\t2.34-168.el9\ti686\nglibc\t2.34-168.el9\tx86_64\nshadow-utils\t2:4.9-12.el9\tx86_64\ntzdata\t2025b-1.el9\tnoarch\n"

func TestParseRPM(t *testing.T) {
	t.Parallel()
	list, err := ParseRPM([]byte(listed))
	var got []string
	for _, p := range list {
		got = append(got, p.Name+"="+p.Version)
	}
	const want = "bash=5.1.8-9.el9 glibc=2.34-168.el9 glibc:i686=2.34-168.el9 kernel-core=5.14.0-503.el9, 5.14.0-570.el9 rpm=4.16.1.3-37.el9 shadow-utils=2:4.9-12.el9 tzdata=2025b-1.el9"
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	for _, bad := range []string{"", "bash\t5.1\n", "bash 5.1 x86_64\n", listed + "torn\t1"} {
		if list, err := ParseRPM([]byte(bad)); err == nil {
			t.Errorf("%q is read as %v", bad, list)
		}
	}
}

// A node without dpkg is asked by rpm, and one without both says so.
func TestPackagesOfRPM(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rpm func() ([]byte, error)
		gap string
	}{
		"rpm":     {func() ([]byte, error) { return []byte(listed), nil }, ""},
		"neither": {func() ([]byte, error) { return nil, fs.ErrNotExist }, "neither dpkg nor rpm"},
		"locked":  {func() ([]byte, error) { return nil, errors.New("rpm: cannot open Packages database") }, "cannot open"},
		"torn":    {func() ([]byte, error) { return []byte("bash\t5.1\n"), nil }, "is no line"},
	} {
		b := Reader{FS: sysfs.Of(fstest.MapFS{}), RPM: c.rpm}.Read(wire.BaselineParams{})
		var gaps string
		for _, g := range b.Gaps {
			if g.Kind == wire.ItemPackages {
				gaps += g.Why
			}
		}
		if (c.gap == "") != (gaps == "") || !strings.Contains(gaps, c.gap) || (c.gap == "") != (len(b.List) == 7) {
			t.Errorf("%s: gaps %q, %d packages", name, gaps, len(b.List))
		}
	}
}
