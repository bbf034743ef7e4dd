// SPDX-License-Identifier: Apache-2.0

// Package baseline says how an installed node is, in items that can be compared
// with what they were: kernel and arguments, packages, firmware, what is plugged
// in, settings of NICs, width and speed of links, error counters. It reads files
// of /proc, /sys and dpkg, asks rpm, and changes nothing.
package baseline

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/memory"
	"github.com/ironrail/ironrail/provision/agent/secureboot"
	"github.com/ironrail/ironrail/provision/agent/smbios"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Reader looks at one node.
type Reader struct {
	FS   sysfs.FS    // the root of the node
	Open disk.Opener // of the disks that FS lists; nil: disk.Open
	// RPM lists the packages of a node without dpkg, as the function RPM does; nil: none has rpm.
	RPM func() ([]byte, error)
}

// maxValue bounds one value in bytes: a kernel's command line has at most 4 KiB.
const maxValue = 4096

// Read looks. What it cannot read is a gap, or is not there.
func (l Reader) Read(p wire.BaselineParams) wire.Baseline {
	b := reading{Reader: l}
	in := inspect.Inspector{FS: l.FS, Open: l.Open}
	b.out.Identity = in.Identity()
	b.out.BootID = l.FS.Text("proc/sys/kernel/random/boot_id")
	seconds, _, _ := strings.Cut(l.FS.Text("proc/uptime"), " ")
	b.out.Uptime, _ = strconv.ParseFloat(seconds, 64)
	b.kernel()
	b.disks(in)
	b.chassis(in)
	b.secureBoot()
	b.functions()
	b.ports()
	if !p.Bare {
		b.packages(p)
	}
	if p.Hardware {
		hw := in.Hardware()
		b.out.Hardware, b.out.Root = &hw, in.RootDisks()
	}
	slices.SortStableFunc(b.out.Items, func(x, y wire.Item) int {
		return cmp.Or(strings.Compare(x.Kind, y.Kind), strings.Compare(x.Part, y.Part), strings.Compare(x.Name, y.Name))
	})
	return b.out
}

// reading is one look under way.
type reading struct {
	Reader
	out wire.Baseline
}

// add adds an item, unless nothing is known.
func (b *reading) add(kind, part, name, value string) {
	value = strings.TrimSpace(value)
	if value == "" {
		return
	}
	b.out.Items = append(b.out.Items, wire.Item{Kind: kind, Part: part, Name: name, Value: value[:min(len(value), maxValue)]})
}

func (b *reading) gap(kind, why string) {
	b.out.Gaps = append(b.out.Gaps, wire.Gap{Kind: kind, Why: why})
}

// drivers are the modules whose versions matter, where the kernel tells them.
var drivers = []string{"nvidia", "nvidia_peermem", "mlx5_core", "mlx5_ib", "amdgpu", "bnxt_en", "bnxt_re", "ice", "irdma", "rdma_rxe", "gdrdrv"}

func (b *reading) kernel() {
	b.add(wire.ItemKernel, "", "release", b.FS.Text("proc/sys/kernel/osrelease"))
	b.add(wire.ItemKernel, "", "arguments", strings.Join(strings.Fields(b.FS.Text("proc/cmdline")), " "))
	for _, m := range drivers {
		b.add(wire.ItemDrivers, m, "version", b.FS.Text("sys/module", m, "version"))
	}
}

// secureBoot is what firmware and kernel show of it.
func (b *reading) secureBoot() {
	s := secureboot.Read(b.FS)
	if s == nil {
		return // no UEFI
	}
	b.add(wire.ItemSecureBoot, "", "state", s.State)
	b.add(wire.ItemSecureBoot, "", "lockdown", s.Lockdown)
	for _, k := range secureboot.Keys(b.FS) {
		b.add(wire.ItemSecureBoot, "certificate "+k.Fingerprint, "name", cmp.Or(k.Name, "without a name"))
	}
}

// disks are what is plugged in, with the install that one of them carries; that of a system in
// memory is its own, whatever lies on a disk.
func (b *reading) disks(in inspect.Inspector) {
	is, marked, err := memory.Installed(b.FS)
	if err != nil {
		b.gap(wire.ItemImage, err.Error())
	}
	if marked {
		b.add(wire.ItemImage, "", "install", is.Marker)
		b.add(wire.ItemImage, "", "state", string(disk.Configured))
		b.add(wire.ItemImage, "", "digest", is.Digest)
	}
	for _, d := range in.Disks() {
		part := d.PCI + " " + d.Type
		if d.Serial != "" {
			part = d.Serial
		}
		b.add(wire.ItemHardware, "disk "+part, "model", strings.TrimSpace(d.Model+" "+strconv.FormatInt(d.Size, 10)))
		b.add(wire.ItemFirmware, "disk "+part, "version", b.FS.Text("sys/block", d.Name, "device/firmware_rev"))
		if d.Marker == "" || marked {
			continue
		}
		marked = true
		b.add(wire.ItemImage, "", "install", d.Marker)
		b.add(wire.ItemImage, "", "state", d.State)
		b.add(wire.ItemImage, "", "digest", disk.ManifestDigest(b.Open, d.Path))
	}
}

// chassis is what firmware tables and the kernel say of chassis, CPUs and memory.
func (b *reading) chassis(in inspect.Inspector) {
	hw := in.Chassis()
	b.add(wire.ItemHardware, "", "serial", hw.Identity.Serial)
	b.add(wire.ItemHardware, "", "uuid", hw.Identity.UUID)
	b.add(wire.ItemHardware, "", "product", strings.TrimSpace(hw.Identity.Vendor+" "+hw.Identity.Product))
	b.add(wire.ItemHardware, "CPU", "model", hw.CPU.Model)
	b.add(wire.ItemHardware, "CPU", "sockets", count(int64(hw.CPU.Sockets)))
	b.add(wire.ItemHardware, "CPU", "cores", count(int64(hw.CPU.Cores)))
	b.add(wire.ItemHardware, "CPU", "threads", count(int64(hw.CPU.Threads)))
	b.add(wire.ItemHardware, "memory", "installed", count(hw.Memory.Installed))
	b.add(wire.ItemFirmware, "BIOS", "version", b.FS.Text("sys/class/dmi/id/bios_version"))
	for _, m := range smbios.Modules(b.FS.Bytes("sys/firmware/dmi/tables/DMI")) {
		b.add(wire.ItemHardware, "DIMM "+m.Slot, "module", strings.Join(strings.Fields(m.Maker+" "+m.Part+" "+m.Serial+" "+strconv.FormatInt(m.Size, 10)), " "))
	}
	for line := range strings.Lines(b.FS.Text("proc/cpuinfo")) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "microcode" {
			b.add(wire.ItemFirmware, "CPU", "microcode", v)
			break
		}
	}
}

// count is a number that is known when it is not 0.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func (b *reading) packages(p wire.BaselineParams) {
	list, err := b.list()
	if err != nil {
		b.gap(wire.ItemPackages, err.Error())
		return
	}
	if b.out.Packages = Digest(list); !slices.Contains(p.Known, b.out.Packages) {
		b.out.List = list
	}
}

// list is what dpkg has installed, else rpm.
func (b *reading) list() ([]wire.Package, error) {
	text, err := b.FS.Whole(maxStatus, dpkg.StatusFile)
	if errors.Is(err, fs.ErrNotExist) && b.RPM != nil {
		text, err := b.RPM()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, errors.New("the node has neither dpkg nor rpm")
		}
		if err != nil {
			return nil, err
		}
		return ParseRPM(text)
	}
	if err != nil {
		return nil, err
	}
	list, err := ParseStatus(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dpkg.StatusFile, err)
	}
	return list, nil
}
