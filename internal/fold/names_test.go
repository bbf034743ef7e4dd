// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"fmt"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	t.Parallel()
	var rack, racks, odd, alternate []string
	for n := 1; n < 1000; n += 2 {
		alternate = append(alternate, fmt.Sprintf("n%d", n))
	}
	for r := 1; r <= 16; r++ {
		for n := 1; n <= 32; n++ {
			racks = append(racks, fmt.Sprintf("r%02d-u%02d", r, n))
		}
	}
	for n := 1; n <= 64; n++ {
		rack = append(rack, fmt.Sprintf("r1n%02d", n))
		odd = append(odd, fmt.Sprintf("host%c%c", 'a'+n%26, 'a'+n/26))
	}
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"none", nil, ""},
		{"one", []string{"r1n07"}, "r1n07"},
		{"a rack", rack, "r1n[01-64]"},
		{"racks", racks, "r[01-16]-u[01-32]"},
		{"with holes, in no order", []string{"n9", "n1", "n3", "n2", "n10", "n7"}, "n[1-3,7,9-10]"},
		{"padded and not", []string{"n1", "n01", "n10", "n010"}, "n010,n1,n[01,10]"},
		{"a word", []string{"head", "n1", "n2"}, "head,n[1-2]"},
		{"racks that differ", []string{"r1n1", "r1n2", "r2n1", "r2n3"}, "r1n[1-2],r2n[1,3]"},
		{"number in the middle", []string{"n1-gpu", "n2-gpu"}, "n[1-2]-gpu"},
		{"twice", []string{"n1", "n1"}, "n1"},
		{"a number that is too long", []string{"n12345678901", "n12345678902"}, "n12345678901,n12345678902"},
		{"more ranges than one word takes", alternate[:13], "n25,n[1,3,5,7,9,11,13,15,17,19,21,23]"},
		{"no numbers", odd, "hostab,hostac,hostba,hostbb,hostbc,hostca,hostcb,hostcc,hostda,hostdb,hostdc,hostea and 52 more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Names(c.names); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if got := Names(alternate); len(got) > 1000 || !strings.HasSuffix(got, " and 356 more") {
		t.Errorf("every other of a thousand: %s", got)
	}
	if got, want := Nodes(rack), "64 nodes: r1n[01-64]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Nodes([]string{"n7"}); got != "n7" {
		t.Errorf("one node is %s", got)
	}
}
