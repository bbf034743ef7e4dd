// SPDX-License-Identifier: Apache-2.0

package rack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const diskHeader = "machine,name,pci,serial,size,block\n"

func loadDisks(t *testing.T, text string) ([]Disk, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "disks.csv")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadDisks(name, []Machine{{Name: "n1", Serial: "LAB0001"}, {Name: "n2", Serial: "LAB0002"}})
}

func TestLoadDisks(t *testing.T) {
	t.Parallel()
	ds, err := loadDisks(t, diskHeader+"n2,data,0000:00:02.0,DATA0002,64MiB,4096\nn2,os,0000:00:07.0,,,\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Disk{
		{"n1", "os", "0000:00:05.0", "LAB0001", 6 << 30, 512},
		{"n2", "os", "0000:00:07.0", "LAB0002", 6 << 30, 512},
		{"n2", "data", "0000:00:02.0", "DATA0002", 64 << 20, 4096},
	}
	if len(ds) != len(want) {
		t.Fatalf("got %d disks: %v", len(ds), ds)
	}
	for i := range want {
		if ds[i] != want[i] {
			t.Errorf("disk %d is %+v, want %+v", i, ds[i], want[i])
		}
	}
	if mine := DisksOf(ds, "n2"); len(mine) != 2 || mine[0].Name != SystemDisk {
		t.Errorf("n2 has %v", mine)
	}
}

func TestLoadDisksRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, rows, want string }{
		{"unknown machine", "n3,data,0000:00:02.0,D,1GiB,\n", `machine "n3" is not in this lab`},
		{"slot of a NIC", "n1,data,0000:00:03.0,D,1GiB,\n", "pci"},
		{"slot of the system disk", "n1,data,0000:00:05.0,D,1GiB,\n", "both have pci 0000:00:05.0"},
		{"another bus", "n1,data,0000:01:02.0,D,1GiB,\n", "pci"},
		{"no serial", "n1,data,0000:00:02.0,,1GiB,\n", "serial"},
		{"a comma in a serial", "n1,data,0000:00:02.0,\"a,b\",1GiB,\n", "serial"},
		{"no size", "n1,data,0000:00:02.0,D,,\n", "size"},
		{"an odd size", "n1,data,0000:00:02.0,D,1001B,\n", "size"},
		{"blocks of 520", "n1,data,0000:00:02.0,D,1GiB,520\n", "block"},
		{"twice", "n1,data,0000:00:02.0,D,1GiB,\nn1,data,0000:00:07.0,E,1GiB,\n", "both have name data"},
		{"a path as name", "n1,../x,0000:00:02.0,D,1GiB,\n", "name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := loadDisks(t, diskHeader+c.rows); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := loadDisks(t, "machine,name\n"); err == nil {
		t.Error("missing columns were accepted")
	}
}
