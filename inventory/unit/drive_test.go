// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"strings"
	"testing"
)

// TestParseDriveSize: what is refused, and what takes in what. That sizes fit the
// disks which bear such labels is tested where the language is.
func TestParseDriveSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"3.84": "has no unit", "3.84Tb": "Did you mean \"3.84TB\"", "3.84TB,": "does not start with a number", "> 3.84TB": "written with >=", "3.84TB, <= 4TB": "a range is written as",
		"": "does not start with a number", "9223372036854775807B": "", "9223372036854775808B": "more than", "9.2PB": "", "9300PB": "more than", "9223PB": "more than", "4700W": "no amount of data",
	} {
		l, err := ParseDriveSize(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", text, l, err, want)
		}
	}
	for _, c := range []struct {
		narrow, wide string
		want         bool
	}{
		{"3.84TB", "4TB", true}, {"4TB", "3.84TB", false}, {"4.00TB", "3.84TB", false}, {"3.84TB", ">= 3.8TB, <= 3.9TB", true}, {"3.84TB", ">= 3.84TB", false},
		{"= 3.84TB", "3.84TB", true}, {"3.84TB", "= 3.84TB", false}, {">= 3.84TB", "3.84TB", false}, {"3.84TB", "3.840TB", false}, {"3.840TB", "3.84TB", true},
	} {
		narrow, err := ParseDriveSize(c.narrow)
		wide, err2 := ParseDriveSize(c.wide)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if got := narrow.Within(wide); got != c.want {
			t.Errorf("%q within %q: %v", c.narrow, c.wide, got)
		}
	}
	if l, err := ParseDriveSize("0GB"); err != nil || l.Allows(-1) || !l.Allows(0) {
		t.Errorf("0GB: %+v, %v", l, err)
	}
	for label, want := range map[Bytes]Bytes{480e9: 480_103_981_056, 61_440e9: 61_451_933_147_136, 50e9: 50_020_540_416, 49e9: 49e9, 2e18: 2e18} {
		if got := DriveCapacity(label); got != want {
			t.Errorf("a label of %d bytes stands for %d, want %d", label, got, want)
		}
	}
}
