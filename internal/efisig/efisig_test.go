// SPDX-License-Identifier: Apache-2.0

package efisig

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// list is one of these entries, behind a header of so many bytes.
func list(kind string, header int, entries ...string) []byte {
	each := 0
	if len(entries) > 0 {
		each = OwnerSize + len(entries[0])
	}
	b := []byte(kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(ListSize+header+each*len(entries)))
	b = binary.LittleEndian.AppendUint32(b, uint32(header))
	b = binary.LittleEndian.AppendUint32(b, uint32(each))
	b = append(b, make([]byte, header)...)
	for _, e := range entries {
		b = append(append(b, make([]byte, OwnerSize)...), e...)
	}
	return b
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	other := strings.Repeat("x", 16)
	far := list(X509, 0, "a")
	far[20] = 200 // a header beyond its list
	odd := append(list(X509, 0, "abc"), 'z')
	odd[16]++
	for name, c := range map[string]struct {
		lists   []byte
		want    string
		damaged bool
	}{
		"none":               {nil, "", false},
		"two lists":          {slices.Concat(list(X509, 0, "abc", "def"), list(other, 0, "hash"), list(X509, 8, "ghi")), "abc def ghi", false},
		"cut off":            {list(X509, 0, "abc")[:40], "", true},
		"half a list":        {append(list(X509, 0, "abc"), 1, 2), "abc", true},
		"empty entries":      {slices.Concat(list(X509, 0, ""), list(X509, 0, "abc")), "abc", true},
		"a header too large": {slices.Concat(far, list(X509, 0, "abc")), "abc", true},
		"a byte too many":    {odd, "abc", true},
		"no size":            {make([]byte, ListSize), "", true},
	} {
		ders, damaged := Certificates(c.lists)
		var got []string
		for _, d := range ders {
			got = append(got, string(d))
		}
		if strings.Join(got, " ") != c.want || damaged != c.damaged {
			t.Errorf("%s: %q, damaged %v", name, got, damaged)
		}
	}
}
