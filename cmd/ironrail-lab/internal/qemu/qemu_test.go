// SPDX-License-Identifier: Apache-2.0

package qemu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
)

func machine(h rack.Hardware) rack.Machine {
	return rack.Machine{Name: "n1", Hardware: h, Serial: "LAB0001", UUID: "6c616230-0000-4000-8000-000000000001", BootMAC: "52:54:00:77:00:11", RailMAC: "52:54:00:77:10:11"}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		hardware  rack.Hardware
		start     Start
		has, lack []string
	}{
		{"bios from disk", rack.BIOS, Start{NICIndex: diskFirst, SOLPort: 9001},
			[]string{"mac=52:54:00:77:00:11,bootindex=2,addr=0x3", "bootindex=1,addr=0x05", "addr=0x4", "product=lab-bios", "serial=LAB0001", "port=9001", "-S"}, []string{"pflash", "PXESupport"}},
		{"bios from net", rack.BIOS, Start{NICIndex: netFirst}, []string{"mac=52:54:00:77:00:11,bootindex=0,addr=0x3"}, nil},
		{"uefi", rack.UEFI, Start{NICIndex: netFirst}, []string{"mac=52:54:00:77:00:11,romfile=,bootindex=0", "vars.fd", "IPv6PXESupport"}, []string{"IPv4PXESupport"}},
		{"uefi http", rack.UEFIHTTP, Start{NICIndex: netFirst}, []string{"romfile=,bootindex=0", "IPv4PXESupport,string=n"}, nil},
		{"secure boot", rack.Secure, Start{NICIndex: netFirst}, []string{"-machine q35,graphics=off,smm=on -global driver=cfi.pflash01,property=secure,value=on", "OVMF_CODE_4M.secboot.fd", "romfile=,bootindex=0", "tpm-tis"}, nil},
		{"a TPM", rack.TPM, Start{NICIndex: netFirst}, []string{"OVMF_CODE_4M.fd", "-chardev socket,id=tpm,path=/state/n1/tpm.sock -tpmdev emulator,id=tpm0,chardev=tpm -device tpm-tis,tpmdev=tpm0"}, []string{"smm"}},
		{"tagged", rack.Tagged, Start{NICIndex: netFirst}, []string{"OVMF_CODE_4M.fd", "-netdev dgram,id=boot0,local.type=unix,local.path=/state/n1/port.nic,remote.type=unix,remote.path=/state/n1/port -device virtio-net-pci,id=nic0,netdev=boot0"}, []string{"n1-boot"}},
		{"arm64", rack.ARM64, Start{NICIndex: netFirst, SOLPort: 9001}, []string{"qemu-system-aarch64 -name n1 -machine virt -cpu cortex-a57 ", "AAVMF_CODE.fd", "vars.fd", "romfile=,bootindex=0,addr=0x3",
			"bootindex=1,addr=0x05", "product=lab-arm64", "port=9001"}, []string{"q35", "OVMF_CODE", "IPv4PXESupport"}},
		{"x86", rack.UEFI, Start{}, []string{"qemu-system-x86_64 -name n1 -machine q35,graphics=off "}, []string{"virt ", "AAVMF"}},
		{"a data disk of 4096-byte blocks in a lower slot", rack.UEFI, Start{Disks: []rack.Disk{
			rack.SystemDiskOf(machine(rack.UEFI)), {Name: "data", PCI: "0000:00:02.0", Serial: "DATA1", Block: 4096}}},
			[]string{"file=/state/n1/disk.raw,if=none,id=d0", "drive=d0,serial=LAB0001,bootindex=1,addr=0x05", "file=/state/n1/disk-data.raw,if=none,id=d1",
				"drive=d1,serial=DATA1,bootindex=3,addr=0x02,logical_block_size=4096,physical_block_size=4096"}, nil},
		{"rail NIC missing", rack.BIOS, Start{NoRail: true}, nil, []string{"n1-rail", "addr=0x4"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.start.Disks == nil {
				tt.start.Disks = []rack.Disk{rack.SystemDiskOf(machine(tt.hardware))}
			}
			got := strings.Join(Args(machine(tt.hardware), FilesIn("/state", "n1"), tt.start), " ")
			for _, s := range tt.has {
				if !strings.Contains(got, s) {
					t.Errorf("no %q in %s", s, got)
				}
			}
			for _, s := range tt.lack {
				if strings.Contains(got, s) {
					t.Errorf("%q in %s", s, got)
				}
			}
		})
	}
}

func TestBootOnce(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		asks []string // before each boot; "" asks for nothing
		want []Source
	}{
		{"nothing asked", []string{"", ""}, []Source{Disk, Disk}},
		{"pxe holds once", []string{"pxe", "", ""}, []Source{Net, Disk, Disk}},
		{"disk asked", []string{"default", "pxe"}, []Source{Disk, Net}},
		{"cleared again", []string{"none"}, []Source{Disk}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var b BootOrder
			var got []Source
			for _, a := range tt.asks {
				if a != "" {
					b.Ask(a)
					if b.Asked() != a {
						t.Errorf("asked %q, reads %q", a, b.Asked())
					}
				}
				got = append(got, SourceOf(b.Take()))
				if b.Asked() != "none" {
					t.Errorf("still asks for %q after the boot", b.Asked())
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("boots %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPrepareKeepsTheDisk(t *testing.T) {
	t.Parallel()
	f := FilesIn(t.TempDir(), "n1")
	disks := []rack.Disk{rack.SystemDiskOf(machine(rack.BIOS)), {Name: "data", Size: 1 << 20}}
	if err := Prepare(machine(rack.BIOS), f, disks); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Disk)
	if err != nil || info.Size() != int64(rack.DefaultSize) {
		t.Fatalf("disk of %d bytes, error %v", info.Size(), err)
	}
	if info, err := os.Stat(f.DiskFile("data")); err != nil || info.Size() != 1<<20 {
		t.Fatalf("data disk: %v, %v", info, err)
	}
	if err := os.WriteFile(f.Disk, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(machine(rack.BIOS), f, disks); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(f.Disk); string(b) != "mine" {
		t.Error("an existing disk was replaced")
	}
}

func TestCopyNew(t *testing.T) {
	t.Parallel()
	from, to := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(from, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := copyNew(from, to, func(b []byte) ([]byte, error) { return append(b, '!'), nil }); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(from, []byte("2"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ := os.ReadFile(to); string(b) != "1!" {
		t.Errorf("copy holds %q, want the first content kept", b)
	}
}
