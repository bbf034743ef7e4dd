// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory/unit"
)

// TestDiskSize: a size is what stands on the label of a disk, as the language and
// its documents promise. The bytes are those that such disks report.
func TestDiskSize(t *testing.T) {
	t.Parallel()
	cases := []struct {
		size string
		fits []unit.Bytes
		not  []unit.Bytes
	}{
		{"480GB", []unit.Bytes{480_103_981_056}, []unit.Bytes{500_107_862_016}},
		{"960GB", []unit.Bytes{960_197_124_096}, []unit.Bytes{1_000_204_886_016}},
		{"1.92TB", []unit.Bytes{1_920_383_410_176}, []unit.Bytes{2_000_398_934_016, 1_800_360_124_416}},
		{"3.84TB", []unit.Bytes{3_840_755_982_336, 3_835_000_000_000, 3_844_999_999_999}, []unit.Bytes{3_834_999_999_999, 3_845_000_000_000, 4_000_787_030_016}},
		{"3840GB", []unit.Bytes{3_840_755_982_336, 3_839_500_000_000}, []unit.Bytes{3_840_755_982_337, 3_839_499_999_999}},
		{"7.68TB", []unit.Bytes{7_681_501_126_656}, []unit.Bytes{8_001_563_222_016}},
		{"30.72TB", []unit.Bytes{30_725_971_992_576}, []unit.Bytes{30_700_000_000_000}},
		{"4TB", []unit.Bytes{4_000_787_030_016, 3_840_755_982_336}, []unit.Bytes{4_500_000_000_000, 3_499_999_999_999}},
		{"4.00TB", []unit.Bytes{4_000_787_030_016}, []unit.Bytes{3_840_755_982_336}},
		{"6GiB", []unit.Bytes{6 << 30, 11 << 29}, []unit.Bytes{13 << 29, 11<<29 - 1}},
		{"3840755982336B", []unit.Bytes{3_840_755_982_336}, []unit.Bytes{3_840_755_982_335, 3_840_755_982_337}},
		{"= 3.84TB", []unit.Bytes{3_840_000_000_000}, []unit.Bytes{3_840_755_982_336}},
		{">= 3.84TB", []unit.Bytes{3_840_000_000_000}, []unit.Bytes{3_839_999_999_999}},
		{">= 3.84TB, <= 4TB", []unit.Bytes{3_840_755_982_336, 4_000_000_000_000}, []unit.Bytes{3_839_999_999_999, 4_000_000_000_001}},
	}
	var hcl strings.Builder
	for i, c := range cases {
		fmt.Fprintf(&hcl, "hardware \"h%02d\" {\n  disk \"os\" {\n    size = %q\n  }\n}\n", i, c.size)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(hcl.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	inv, diags, files := Load(dir, Options{})
	if len(inv.Hardware) != len(cases) {
		t.Fatalf("%d hardware blocks:\n%s", len(inv.Hardware), text(t, diags, files))
	}
	for i, c := range cases {
		l := inv.Hardware[i].Disks[0].Size
		for _, b := range c.fits {
			if !l.Allows(b) {
				t.Errorf("a disk of %d bytes does not fit size = %q", b, c.size)
			}
		}
		for _, b := range c.not {
			if l.Allows(b) {
				t.Errorf("a disk of %d bytes fits size = %q", b, c.size)
			}
		}
		if l.String() != c.size {
			t.Errorf("size = %q is printed as %q", c.size, l)
		}
	}
}
