// SPDX-License-Identifier: Apache-2.0

package efiboot

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
)

// memory is firmware that keeps what it is told, but what lies says.
type memory struct {
	vars map[string][]byte
	lies map[string]bool // variables whose writes are taken and dropped
}

func (m memory) Names() ([]string, error) {
	if len(m.vars) == 0 {
		return nil, ErrNone
	}
	return slices.Sorted(maps.Keys(m.vars)), nil
}

func (m memory) Get(name string) ([]byte, error) {
	if b, ok := m.vars[name]; ok {
		return b, nil
	}
	return nil, fs.ErrNotExist
}

func (m memory) Set(name string, b []byte) error {
	if !m.lies[name] {
		m.vars[name] = b
	}
	return nil
}

var (
	nic   = addr.MAC{0x52, 0x54, 0, 0x77, 0, 0x11}
	other = addr.MAC{0x52, 0x54, 0, 0x77, 0, 0x12}
	esp   = Loader{Name: "ironrail", Partition: 2, First: 4096, Sectors: 131072, GUID: [16]byte{0x28, 0x73, 0x2a, 0xc1, 0x1f, 0xf8, 0xd2, 0x11, 1, 2, 3, 4, 5, 6, 7, 8}, File: `\EFI\BOOT\BOOTX64.EFI`}
)

// pxe is a boot entry of a NIC as EDK2 makes it: PciRoot, Pci, MAC, IPv4.
func pxe(name string, mac addr.MAC) []byte {
	node := func(kind, sub byte, data ...byte) []byte {
		return append([]byte{kind, sub, byte(len(data) + 4), 0}, data...)
	}
	path := slices.Concat(node(2, 1, 0xd0, 0x41, 3, 0x0a, 0, 0, 0, 0), node(1, 1, 0, 3),
		node(3, 11, slices.Concat(mac[:], make([]byte, 26), []byte{1})...), node(3, 12, make([]byte, 23)...), []byte{0x7f, 0xff, 4, 0})
	b := binary.LittleEndian.AppendUint32(nil, active)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(path)))
	return slices.Concat(b, text(name), path)
}

func order(numbers ...uint16) (b []byte) {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint16(b, n)
	}
	return b
}

// firmware is that of a GPU node: a shell, eight rails that boot, and the boot NIC.
func firmware() memory {
	m := memory{vars: map[string][]byte{"BootCurrent": order(3), "BootOrder": order(0, 1, 2, 3), "Timeout": {5, 0}}, lies: map[string]bool{}}
	m.vars["Boot0000"] = pxe("UEFI PXEv4 (rail)", other)
	m.vars["Boot0001"] = pxe("UEFI PXEv6 (rail)", other)
	m.vars["Boot0002"] = Loader{Name: "debian", Partition: 1, GUID: [16]byte{9}, File: `\EFI\debian\shimx64.efi`}.Bytes()
	m.vars["Boot0003"] = pxe("UEFI PXEv4", nic)
	return m
}

// of is an entry of the disk's partition that starts another file.
func of(file string) []byte {
	l := esp
	l.Name, l.File = "debian", file
	return l.Bytes()
}

func TestApply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, first string
		bend        func(memory)
		want        []uint16
		problem     string
		changed     bool
	}{
		{"disk", wire.BootDisk, func(memory) {}, []uint16{4, 0, 1, 2, 3}, "", true},
		{"network", wire.BootNetwork, func(memory) {}, []uint16{3, 4, 0, 1, 2}, "", true},
		{"the entry is there", wire.BootDisk, func(m memory) { m.vars["Boot0007"] = esp.Bytes(); m.vars["BootOrder"] = order(0, 7) }, []uint16{7, 0}, "", true},
		{"all is right", wire.BootDisk, func(m memory) { m.vars["Boot0007"] = esp.Bytes(); m.vars["BootOrder"] = order(7, 3) }, []uint16{7, 3}, "", false},
		{"another entry of the partition stands first", wire.BootDisk, func(m memory) {
			m.vars["Boot0007"], m.vars["Boot0008"] = of(`\EFI\debian\fwupdx64.efi`), of(`\EFI\boot\bootx64.efi`)
			m.vars["BootOrder"] = order(7, 8)
		}, []uint16{8, 7}, "", true},
		{"several others of the partition", wire.BootDisk, func(m memory) {
			m.vars["Boot0007"], m.vars["Boot0008"] = of(`\EFI\debian\fwupdx64.efi`), of(`\EFI\debian\shimx64.efi`)
			m.vars["BootOrder"] = order(7, 8)
		}, []uint16{4, 7, 8}, "", true},
		{"one other of the partition", wire.BootDisk, func(m memory) {
			m.vars["Boot0007"] = of(`\EFI\debian\shimx64.efi`)
			m.vars["BootOrder"] = order(3, 7)
		}, []uint16{7, 3}, "", true},
		{"no order yet", wire.BootDisk, func(m memory) { delete(m.vars, "BootOrder") }, []uint16{4}, "", true},
		{"no entry of the boot NIC", wire.BootNetwork, func(m memory) { delete(m.vars, "Boot0003") }, []uint16{0, 1, 2, 3}, "", true},
		{"the order is not kept", wire.BootDisk, func(m memory) { m.lies["BootOrder"] = true }, []uint16{0, 1, 2, 3}, "the firmware keeps the order 0000,0001,0002,0003; 0004,0000,0001,0002,0003 was written", true},
		{"the entry is not kept", wire.BootDisk, func(m memory) { m.lies["Boot0004"] = true }, []uint16{0, 1, 2, 3}, "does not keep Boot0004", false},
		{"no variables", wire.BootDisk, func(m memory) { clear(m.vars) }, nil, "shows no variables", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := firmware()
			c.bend(m)
			got := Apply(m, Goal{Disk: esp, BootNIC: nic, First: c.first})
			now, _ := numbers(m, "BootOrder")
			if c.name == "no entry of the boot NIC" { // its number is free then
				c.want, c.problem = []uint16{0, 1, 2, 3}, "lists no entry of the boot NIC 52:54:00:77:00:11"
			}
			if !slices.Equal(now, c.want) || got.Changed != c.changed || !strings.Contains(got.Problem, c.problem) || (c.problem == "") != (got.Problem == "") {
				t.Errorf("order %v, changed %v, problem %q; want %v, %v, %q", now, got.Changed, got.Problem, c.want, c.changed, c.problem)
			}
			if got.Problem == "" && (len(got.Entries) == 0 || got.Entries[0].Number != int(c.want[0])) {
				t.Errorf("evidence %+v", got)
			}
		})
	}
}

// TestByDevicePath: entries are told by what they start from, whatever they are
// called: a rail that is called like the boot NIC is not it.
func TestByDevicePath(t *testing.T) {
	t.Parallel()
	m := firmware()
	m.vars["Boot0000"] = pxe("UEFI PXEv4", other)
	m.vars["Boot0005"] = Loader{Name: "ironrail", GUID: [16]byte{7}, File: esp.File}.Bytes() // of another disk
	entries, current, err := Read(m)
	if err != nil || current != 3 || len(entries) != 5 {
		t.Fatalf("%+v, %d, %v", entries, current, err)
	}
	got := Apply(m, Goal{Disk: esp, BootNIC: nic, First: wire.BootNetwork})
	if now, _ := numbers(m, "BootOrder"); !slices.Equal(now, []uint16{3, 4, 0, 1, 2}) || got.Problem != "" {
		t.Errorf("order %v, problem %q", now, got.Problem)
	}
}

// TestFiles: boot entries are written to and read from files of efivarfs.
func TestFiles(t *testing.T) {
	t.Parallel()
	applied(t)
}

// applied returns a folder of boot entries, to which a goal was applied.
func applied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	d := Dir(dir)
	for name, b := range firmware().vars {
		if err := d.Set(name, b); err != nil {
			t.Fatal(err)
		}
	}
	if got := Apply(d, Goal{Disk: esp, BootNIC: nic, First: wire.BootDisk}); got.Problem != "" || !got.Changed || got.Current != 3 {
		t.Fatalf("%+v", got)
	}
	b, err := os.ReadFile(filepath.Join(dir, "BootOrder"+global))
	if err != nil || !slices.Equal(b, append([]byte{7, 0, 0, 0}, order(4, 0, 1, 2, 3)...)) {
		t.Errorf("file %x, %v", b, err)
	}
	if _, err := d.Get("BootNext"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("BootNext: %v", err)
	}
	return dir
}

// TestPeerEfibootmgr: the tool that administrators use reads the same from the files.
func TestPeerEfibootmgr(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "efibootmgr")
	dir := applied(t)
	cmd := exec.CommandContext(t.Context(), "efibootmgr", "-v")
	cmd.Env = append(os.Environ(), "EFIVARFS_PATH="+dir+"/", "LIBEFIVAR_OPS=efivarfs")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("efibootmgr reads no other folder here: %v: %s", err, out)
	}
	for _, want := range []string{"BootCurrent: 0003", "BootOrder: 0004,0000,0001,0002,0003", "Boot0004* ironrail\tHD(2,GPT,c12a7328-f81f-11d2-0102-030405060708,0x1000,0x20000)/File(\\EFI\\BOOT\\BOOTX64.EFI)", "MAC(525400770011,1)"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("efibootmgr does not say %q:\n%s", want, out)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(esp.Bytes())
	f.Add(pxe("UEFI PXEv4", nic))
	f.Fuzz(func(t *testing.T, b []byte) { parse(1, b) })
}
