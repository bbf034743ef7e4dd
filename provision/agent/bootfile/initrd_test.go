// SPDX-License-Identifier: Apache-2.0

package bootfile_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/bootfile"
)

func segment(t testing.TB, node string) []byte {
	t.Helper()
	b, err := ramdisk.NodeSegment(wire.Boot{Version: 1, Node: node, Address: "10.77.0.11/24"})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFind(t *testing.T) {
	t.Parallel()
	one, two := segment(t, "n1"), segment(t, "n2")
	packed := bytes.Repeat([]byte("\x28\xb5\x2f\xfd ironrail/boot.json\x00"), 40) // looks like the name, and is none
	for _, c := range []struct {
		name     string
		segments [][]byte
		want     string
	}{
		{"alone", [][]byte{one}, "n1"},
		{"after a compressed one", [][]byte{packed, one}, "n1"},
		{"joined", [][]byte{slices.Concat(packed, one)}, "n1"},
		{"before noise", [][]byte{one, packed}, "n1"},
		{"the last counts", [][]byte{one, two}, "n2"},
		{"the last counts in one", [][]byte{slices.Concat(two, one)}, "n1"},
		{"cut off", [][]byte{one[:200]}, ""},
		{"none", [][]byte{packed, nil}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, err := bootfile.Find(c.segments...)
			var got wire.Boot
			if err == nil {
				err = json.Unmarshal(b, &got)
			}
			if got.Node != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got node %q, %v; want %q", got.Node, err, c.want)
			}
		})
	}
}

func FuzzFind(f *testing.F) {
	f.Add(segment(f, "n1"))
	f.Add([]byte("070701"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := bootfile.Find(b); err == nil && !bytes.Contains(b, got) {
			t.Error("found what is not there")
		}
	})
}
