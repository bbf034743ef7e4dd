// SPDX-License-Identifier: Apache-2.0

package rack

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const header = "name,hardware,unit,serial,uuid,boot_mac,rail_mac,bmc_mac,bmc_address\n"

const (
	row1 = "n1,lab-bios,1,LAB1,6C616230-0000-4000-8000-000000000001,52:54:00:77:00:11,52:54:00:77:10:11,x,10.77.1.11\n"
	row2 = "n2,lab-uefi,3,LAB2,6c616230-0000-4000-8000-000000000002,52:54:00:77:00:12,52:54:00:77:10:12,x,10.77.1.12\n"
)

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, csv string
		want      int
		err       string
	}{
		{"two rows", header + row1 + row2, 2, ""},
		{"columns in another order", "bmc_address,rail_mac,boot_mac,uuid,serial,hardware,name\n10.0.0.1,02:00:00:00:00:02,02:00:00:00:00:01,6c616230-0000-4000-8000-000000000001,S,lab-bios,a\n", 1, ""},
		{"empty", "", 0, "header"},
		{"no serial column", "name,hardware\n", 0, `column "serial" is missing`},
		{"bad hardware", header + strings.Replace(row1, "lab-bios", "lab-arm", 1), 0, "line 2: hardware"},
		{"comma smuggled into a serial", header + strings.Replace(row1, "LAB1", `"LAB,x=1"`, 1), 0, "serial"},
		{"name too long for a tap", header + strings.Replace(row1, "n1", "abcdefghij", 1), 0, "name"},
		{"multicast mac", header + strings.Replace(row1, "52:54:00:77:00:11", "01:54:00:77:00:11", 1), 0, "boot_mac"},
		{"bad address", header + strings.Replace(row1, "10.77.1.11", "10.77.1", 1), 0, "bmc_address"},
		{"same BMC twice", header + row1 + strings.Replace(row2, "1.12", "1.11", 1), 0, "n1 and n2 both have bmc_address"},
		{"short row", header + "n1,lab-bios\n", 0, "wrong number of fields"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(strings.NewReader(tt.csv))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil || len(got) != tt.want {
				t.Fatalf("got %d machines, error %v; want %d", len(got), err, tt.want)
			}
		})
	}
}

func TestGUID(t *testing.T) {
	t.Parallel()
	g := Machine{UUID: "00112233-4455-6677-8899-aabbccddeeff"}.GUID()
	if got, want := hex.EncodeToString(g[:]), "33221100554477668899aabbccddeeff"; got != want {
		t.Errorf("guid %s, want %s", got, want)
	}
}

func TestLoadChoosesByName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("machines.csv", header+row1)
	write("machines-more.csv", header+row2)
	if ms, err := Load(dir, nil); err != nil || len(ms) != 1 {
		t.Errorf("without names: %d machines, error %v; want those of machines.csv", len(ms), err)
	}
	ms, err := Load(dir, []string{"n2", "n1"})
	if err != nil || len(ms) != 2 || ms[0].Name != "n2" {
		t.Errorf("by name: %v, %v", ms, err)
	}
	if _, err := Load(dir, []string{"n9"}); err == nil {
		t.Error("an unknown machine was accepted")
	}
	if _, err := Load(filepath.Join(dir, "none"), nil); err == nil {
		t.Error("a missing site was accepted")
	}
}

func TestLabSite(t *testing.T) {
	t.Parallel()
	ms, err := Load("../../../../examples/lab", []string{"n1", "n2", "n3"})
	if err != nil {
		t.Fatal(err)
	}
	for i, hw := range []Hardware{BIOS, UEFI, UEFIHTTP} {
		if ms[i].Hardware != hw {
			t.Errorf("%s is %s, want %s", ms[i].Name, ms[i].Hardware, hw)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(header + row1 + row2)
	f.Add("name\n\"")
	f.Fuzz(func(t *testing.T, s string) {
		ms, err := Parse(strings.NewReader(s))
		if err != nil {
			return
		}
		for _, m := range ms {
			if strings.ContainsAny(m.Name+m.Serial+m.UUID+m.BootMAC+m.RailMAC, ",\"' \n") {
				t.Errorf("a separator got through: %+v", m)
			}
		}
	})
}
