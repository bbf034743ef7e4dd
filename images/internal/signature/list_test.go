// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// TestFindSums: lists as vendors publish them.
func TestFindSums(t *testing.T) {
	t.Parallel()
	a, b, long := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 128)
	for name, c := range map[string]struct {
		list, file string
		want       Sums
		kind       errkind.Kind
		says       string
	}{
		"Ubuntu":        {b + " *noble-server-cloudimg-amd64.tar.gz\n" + a + " *noble-server-cloudimg-amd64.img\n", "noble-server-cloudimg-amd64.img", Sums{SHA256: a}, 0, ""},
		"coreutils":     {strings.ToUpper(a) + "  disk.img\r\n", "disk.img", Sums{SHA256: a}, 0, ""},
		"Rocky":         {"# Rocky-9.qcow2: 600 bytes\nSHA256 (Rocky-9.qcow2) = " + a + "\n", "Rocky-9.qcow2", Sums{SHA256: a}, 0, ""},
		"Debian":        {long + "  debian-12.qcow2\n" + long + "  debian-12.raw\n", "debian-12.qcow2", Sums{SHA512: long}, 0, ""},
		"both":          {a + "  ./d (1).img\nSHA512 (d (1).img) = " + long + "\n", "d (1).img", Sums{a, long}, 0, ""},
		"no newline":    {a + "  d", "d", Sums{SHA256: a}, 0, ""},
		"the same line": {a + "  d\n" + a + " *d\n", "d", Sums{SHA256: a}, 0, ""},
		"two":           {a + "  d\n" + b + "  d\n", "d", Sums{}, errkind.Refused, "two checksums for d"},
		"not there":     {b + "  d.old\n", "d", Sums{}, errkind.NotFound, "it has no checksum for d, among 1"},
		"other name":    {a + "  d.old\n", "d", Sums{}, errkind.NotFound, `the checksum of the block is there for ["d.old"]`},
		"in a folder":   {a + "  sub/d\n", "d", Sums{}, errkind.NotFound, `["sub/d"]`},
		"MD5":           {strings.Repeat("a", 32) + "  d\n", "d", Sums{}, errkind.Invalid, "no list of SHA-256"},
		"no list":       {"<html>\n<p>SHA256 (d) = x</p>\n", "d", Sums{}, errkind.Invalid, "no list of SHA-256"},
		"wrong length":  {"SHA256 (d) = " + long + "\nSHA512 (d) = " + a + "\n" + a + " d\n" + a + "\n", "d", Sums{}, errkind.Invalid, "no list of SHA-256"},
	} {
		got, err := findSums([]byte(c.list), c.file, a)
		if got != c.want || errkind.Of(err) != c.kind || err != nil && (!strings.Contains(err.Error(), c.says) || errkind.Action(err) == "" && c.kind != errkind.Refused) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestCompareSums(t *testing.T) {
	t.Parallel()
	have := Sums{strings.Repeat("a", 64), strings.Repeat("c", 128)}
	for want, s := range map[string]Sums{
		"":                  {SHA256: have.SHA256},
		"SHA-256 b for d":   {SHA256: "b", SHA512: have.SHA512},
		"SHA-512 b for d":   {SHA256: have.SHA256, SHA512: "b"},
		"SHA-512 xyz for d": {SHA512: "xyz"},
	} {
		err := s.Compare("d", have)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || errkind.Of(err) != errkind.Mismatch) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if err := (Sums{SHA512: "b"}).Compare("d", Sums{SHA256: "a"}); err != nil {
		t.Errorf("what is not known is compared: %v", err)
	}
}
