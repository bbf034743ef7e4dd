// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"os"
	"strings"
	"testing"
)

// TestListAndTree: lspci is often run twice, as a list and as a tree, which are
// two outputs.
func TestListAndTree(t *testing.T) {
	t.Parallel()
	var file []byte
	for _, name := range []string{"lspci.plain.txt", "lspci.tree.txt", "mlxlink.txt"} {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		file = append(append(file, data...), '\n')
	}
	r, err := Read("f", file)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{r.Kind: 1}
	for _, o := range r.Others {
		count[o.Kind]++
	}
	if len(count) != 2 || count["lspci"] != 2 || count["mlxlink"] != 1 {
		t.Errorf("read were %v", count)
	}
}

// TestSameKindAgain: forms of one program are read apart, and so is a second
// output that has the same devices as the first.
func TestSameKindAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  string
		files []string
	}{
		{"ibnetdiscover", []string{"ibnetdiscover.list.txt", "ibnetdiscover.ports.txt", "ibnetdiscover.director.txt"}},
		{"iblinkinfo", []string{"iblinkinfo.lines.txt", "iblinkinfo.nodes.txt"}},
		{"lspci", []string{"lspci.plain.txt", "lspci.plain.txt"}},
		{"ibstat", []string{"ibstat.txt", "ibstat.txt"}},
		{"ibstatus", []string{"ibstatus.txt", "ibstatus.txt"}},
		{"ibv_devinfo", []string{"ibv_devinfo.txt", "ibv_devinfo.txt"}},
		{"mlxlink", []string{"mlxlink.txt", "mlxlink.txt"}},
		{"rdma-link", []string{"rdma-link.txt", "rdma-link.txt"}},
	} {
		var file []byte
		for _, name := range c.files {
			data, err := os.ReadFile("testdata/" + name)
			if err != nil {
				t.Fatal(err)
			}
			file = append(append(append(file, "[root@n1 ~]# run it\n"...), data...), '\n')
		}
		r, err := Read("f", file)
		down := 0 // a port of the sample of ibstat
		if c.kind == "ibstat" {
			down = 1
		}
		if err != nil || r.Kind != c.kind || len(r.Others) != len(c.files)-1 || len(r.Problems) != len(r.Others)+down {
			t.Errorf("%s: %v, %s, %d others, %v", c.kind, err, r.Kind, len(r.Others), r.Problems)
		}
		for _, o := range r.Others {
			if o.Kind != c.kind || len(o.Problems) != down {
				t.Errorf("%s: %s, %v", c.kind, o.Kind, o.Problems)
			}
		}
	}
}

// TestListsBetween: a list that has a device of the list above is another, also
// below lines of another program, and is not cut at that device.
func TestListsBetween(t *testing.T) {
	t.Parallel()
	const first, second = "17:00.0 3D controller: Vendor GPU (rev a1)\n18:00.0 Infiniband controller: Vendor HCA\n", "00:00.0 Host bridge: Vendor Root\n17:00.0 3D controller: Vendor GPU (rev a1)\n"
	const between = "device 0 port 1 ==> ib0 (Up)\n"
	for _, c := range []struct {
		text  string
		lists int
	}{
		{first + between + second, 2},
		{second + between + first + between + strings.ReplaceAll(first, "17:", "20:"), 3},
		{first + second, 2},
	} {
		r, err := Read("f", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, o := range append(r.Others, Other{Kind: r.Kind}) {
			if o.Kind == "lspci" {
				n++
			}
		}
		if n != c.lists {
			t.Errorf("%q: %d lists, want %d", c.text, n, c.lists)
		}
	}
}
