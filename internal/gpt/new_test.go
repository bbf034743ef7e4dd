// SPDX-License-Identifier: Apache-2.0

package gpt

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

const (
	guidA = "11111111-2222-3333-4444-555555555555"
	guidB = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
)

// made are two partitions, in sectors of the given size.
func made(sector int64) []Partition {
	mib := uint64(1<<20) / uint64(sector)
	return []Partition{
		{Number: 1, Type: EFISystem, GUID: guidA, Name: "esp", First: mib, Last: 3*mib - 1, Sector: sector},
		{Number: 4, Type: LinuxRAID, GUID: guidB, Name: "data-scratch", First: 3 * mib, Last: 7*mib - 1, Sector: sector},
	}
}

func TestNewIsReadBack(t *testing.T) {
	t.Parallel()
	const size = 8 << 20
	for _, sector := range []int64{Sector, Sector4K} {
		f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		table, err := New(size, sector, guidA, made(sector))
		if err == nil {
			_, err = f.WriteAt(table.ProtectiveMBR([]byte{0xeb, 0x63}), 0)
		}
		if err == nil {
			err = f.Truncate(size)
		}
		if err == nil {
			err = table.Write(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := Read(f, size)
		if err != nil || got.Sector() != sector || got.Backup || !slices.Equal(got.Partitions(), made(sector)) {
			t.Errorf("sectors of %d: %v, %+v", sector, err, got.Partitions())
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func([]Partition){
		"overlap":    func(p []Partition) { p[1].First -= 1 },
		"one number": func(p []Partition) { p[1].Number = 1 },
		"past end":   func(p []Partition) { p[1].Last += 4096 },
		"in table":   func(p []Partition) { p[0].First = 3 },
		"no GUID":    func(p []Partition) { p[0].GUID = "x" },
		"no type":    func(p []Partition) { p[0].Type = "" },
		"long name":  func(p []Partition) { p[0].Name = strings.Repeat("x", 37) },
		"number 0":   func(p []Partition) { p[0].Number = 0 },
		"backwards":  func(p []Partition) { p[0].Last = p[0].First - 1 },
	} {
		parts := made(Sector)
		change(parts)
		if _, err := New(8<<20, Sector, guidA, parts); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestPeerNewIsWellFormed asks sgdisk.
func TestPeerNewIsWellFormed(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "sgdisk")
	const size = 8 << 20
	path := filepath.Join(t.TempDir(), "disk")
	table, err := New(size, Sector, guidA, made(Sector))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(table.ProtectiveMBR(nil), 0); err != nil {
		t.Fatal(err)
	}
	if err := table.Write(f); err != nil {
		t.Fatal(err)
	}
	for argv, want := range map[string]string{"-v": "No problems found", "-p": "data-scratch", "-i4": "A19D880F-05FC-4D3B-A006-743F0F84911E"} {
		out, err := exec.CommandContext(t.Context(), "sgdisk", argv, path).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("sgdisk %s: %v\n%s", argv, err, out)
		}
	}
}
