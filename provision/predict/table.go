// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"time"

	"github.com/ironrail/ironrail/inventory/unit"
)

// Row says how long steps of a kind take on some hardware. Of the rows of the
// longest kind that fits a step, the first whose match fits counts.
type Row struct {
	Kind           string // as KindOf gives it, or its beginning up to a dot; * is one word between dots
	Match          Match
	Low, Mid, High time.Duration // of sites, one in ten is faster than Low, half of them than Mid, one in ten slower than High
	Per            Unit          // what that is the time of
	Hold           float64       // share of the step after which it lets go what it holds until released; zero: all of it
	Planned        bool          // the step itself says how long it takes, and all nodes take the same
	Source         string        // where the figures are from; "estimate" where nobody published one
	Words          string        // what a critical path calls such a step; empty: its kind
}

// Match is the hardware that a row is about. Zero fields match everything.
type Match struct {
	Vendor, Product, Boot, Disk string
	GPUs                        int        // at least
	Memory                      unit.Bytes // at least
	NoFirmware                  bool       // the ramdisk starts the system: one that is kept in memory, or by kexec
}

// Unit is what the time of a row is the time of. The zero Unit: the whole step.
type Unit struct {
	Name string
	In   func(members int) float64 // how many of it a step over so many members takes; nil: one
}

// perGiB is the unit of what is done with an image, of its plain size.
var perGiB = Unit{Name: "GiB"}

// in is how many of the unit a step over so many members takes.
func (u Unit) in(members int) float64 {
	if u.In == nil {
		return 1
	}
	return u.In(members)
}

// Disk says how fast an image gets on a kind of disk, through the agent.
type Disk struct {
	Type        string
	Write, Read unit.ByteRate // plain bytes; Read is the check afterwards
	Source      string
}

const (
	sec = time.Second
	mnt = time.Minute
	tib = unit.Bytes(1) << 40
	gib = unit.Bytes(1) << 30

	fromLab = "measured in examples/lab (`make lab`: QEMU without KVM, 2 cores for 2 nodes and the controller)"
	metal   = "firmware self-test dominates a reboot: medians of 218 to 792 s by platform on cloud bare metal, 202 to 820 s in all (gitlab.com/testing-farm/infrastructure merge request 1526, 77 boots)"
	longer  = "estimate, as nobody published a figure for nodes full of GPUs: " + metal + "; 600 s is tight for nodes with a very long self-test (github.com/NVIDIA/deepops pull 779)"
	plain   = "longer than 300 s on bare metal (github.com/microsoft/lisa pull 3082), 5 to 6 minutes and more (github.com/crowbar/crowbar-core pull 1872); the low end is an estimate"
	restart = "one restart, unless drivers or settings of NICs had one: "
	osBoot  = "; the operating system about 40 s after the self-test (openchami.org, blog booting-badger)"
)

// Table is the built-in table, but for the tests of nodes, which say themselves how long
// they take. docs/rehearsal.md shows all of it.
var Table = []Row{
	{Kind: "bmc", Match: Match{Disk: "virtio"}, Low: 100 * time.Millisecond, Mid: 300 * time.Millisecond, High: sec, Source: fromLab},
	{Kind: "bmc", Low: 500 * time.Millisecond, Mid: 2 * sec, High: 8 * sec, Source: "estimate"},

	{Kind: "install.netboot", Match: Match{Disk: "virtio", Boot: "bios"}, Low: 9 * sec, Mid: 12 * sec, High: 18 * sec, Source: fromLab},
	{Kind: "install.netboot", Match: Match{Disk: "virtio"}, Low: 14 * sec, Mid: 17 * sec, High: 22 * sec, Source: fromLab},
	{Kind: "install.netboot", Match: Match{GPUs: 8, Memory: tib}, Low: 8 * mnt, Mid: 11 * mnt, High: 15 * mnt, Source: longer},
	{Kind: "install.netboot", Match: Match{GPUs: 4}, Low: 5 * mnt, Mid: 8 * mnt, High: 13 * mnt, Source: longer},
	{Kind: "install.netboot", Match: Match{Memory: 512 * gib}, Low: 4 * mnt, Mid: 6 * mnt, High: 11 * mnt, Source: metal},
	{Kind: "install.netboot", Low: 2 * mnt, Mid: 4 * mnt, High: 8 * mnt, Source: plain},

	{Kind: "install.mok", Low: 3 * sec, Mid: 8 * mnt, High: 30 * mnt, Source: "estimate: two boots with their self-tests; a node that has the certificate already is only asked"},
	{Kind: "install.inspect", Low: 2 * sec, Mid: 3 * sec, High: 10 * sec, Source: "estimate; 2 s " + fromLab},
	{Kind: "install.write", Match: Match{Disk: "virtio"}, Low: 42 * sec, Mid: 50 * sec, High: 60 * sec, Source: fromLab},
	{Kind: "install.write", Low: 20 * sec, Mid: 60 * sec, High: 3 * mnt, Source: "estimate, for an image whose size is not known"},
	{Kind: "install.configure", Low: 700 * time.Millisecond, Mid: 2 * sec, High: 10 * sec, Source: "estimate; 1 s " + fromLab},

	{Kind: "install.boot", Match: Match{NoFirmware: true}, Low: 10 * sec, Mid: 40 * sec, High: 90 * sec, Source: "the operating system about 40 s after the self-test (openchami.org, blog booting-badger)"},
	{Kind: "install.boot", Match: Match{Disk: "virtio"}, Low: 22 * sec, Mid: 26 * sec, High: 32 * sec, Source: fromLab},
	{Kind: "install.boot", Match: Match{GPUs: 8, Memory: tib}, Low: 9 * mnt, Mid: 12 * mnt, High: 16 * mnt, Source: longer + osBoot},
	{Kind: "install.boot", Match: Match{GPUs: 4}, Low: 6 * mnt, Mid: 9 * mnt, High: 14 * mnt, Source: longer + osBoot},
	{Kind: "install.boot", Match: Match{Memory: 512 * gib}, Low: 5 * mnt, Mid: 7 * mnt, High: 12 * mnt, Source: metal + osBoot},
	{Kind: "install.boot", Low: 150 * sec, Mid: 5 * mnt, High: 9 * mnt, Source: plain + osBoot},

	{Kind: "install.firmware", Match: Match{Disk: "virtio"}, Low: sec, Mid: 26 * sec, High: 32 * sec, Source: restart + fromLab},
	{Kind: "install.firmware", Match: Match{GPUs: 8, Memory: tib}, Low: sec, Mid: 12 * mnt, High: 16 * mnt, Source: restart + longer + osBoot},
	{Kind: "install.firmware", Match: Match{GPUs: 4}, Low: sec, Mid: 9 * mnt, High: 14 * mnt, Source: restart + longer + osBoot},
	{Kind: "install.firmware", Match: Match{Memory: 512 * gib}, Low: sec, Mid: 7 * mnt, High: 12 * mnt, Source: restart + metal + osBoot},
	{Kind: "install.firmware", Low: sec, Mid: 5 * mnt, High: 9 * mnt, Source: restart + plain + osBoot},

	{Kind: "host", Low: 300 * time.Millisecond, Mid: 2 * sec, High: 10 * sec, Source: "estimate: some commands over SSH"},

	{Kind: "drivers", Match: Match{Disk: "virtio"}, Low: 53 * sec, Mid: 58 * sec, High: 100 * sec, Source: fromLab},
	{Kind: "drivers", Match: Match{GPUs: 1}, Low: 4 * mnt, Mid: 8 * mnt, High: 20 * mnt, Source: "estimate: kernel modules are built on the node"},
	{Kind: "drivers", Low: 40 * sec, Mid: 90 * sec, High: 5 * mnt, Source: "estimate"},
	{Kind: "fabric", Low: sec, Mid: 5 * sec, High: 20 * sec, Source: "estimate; 1 to 3 s " + fromLab},

	{Kind: "fabric.*.switch", Low: 20 * sec, Mid: 60 * sec, High: 5 * mnt, Source: "estimate: SONiC takes seconds to patch a few ports, and minutes where there are many (github.com/sonic-net/sonic-buildimage issue 22370)"},
	{Kind: "fabric.*.switches", Low: 10 * time.Millisecond, Mid: 100 * time.Millisecond, High: sec, Source: "estimate: it compares what was read of the switches, and asks none"},
	{Kind: "fabric.*.subnet", Low: 2 * sec, Mid: 10 * sec, High: 60 * sec, Source: "estimate: subnet managers are given their files and sweep"},
	{Kind: "fabric.*.cabling", Low: sec, Mid: 5 * sec, High: 60 * sec, Source: "estimate: ibnetdiscover asks each port of the subnet"},
	{Kind: "fabric.*.domains", Low: sec, Mid: 5 * sec, High: 30 * sec, Source: "estimate: it compares what each node says of its NVLink domain"},
	{Kind: "site.cabling.check", Low: sec, Mid: 5 * sec, High: 60 * sec, Source: "estimate: one sweep of a subnet, or the neighbours of each node, which the nodes have read already"},
	{Kind: "supply", Low: sec, Mid: 3 * sec, High: 20 * sec, Source: "estimate: some twenty SNMP requests, of which a slow card takes a second for each"},

	{Kind: "handover.drain", Low: 100 * time.Millisecond, Mid: 500 * time.Millisecond, High: 10 * sec, Source: "estimate; running jobs, for which a drain waits, are not in it"},
	{Kind: "site.handover", Low: 100 * time.Millisecond, Mid: sec, High: 10 * sec, Source: "estimate; under 1 s " + fromLab},
	{Kind: "site.image", Per: perGiB, Low: 1200 * time.Millisecond, Mid: 2 * sec, High: 5 * sec, Source: "1.4 to 2 s for 0.7 GiB " + fromLab},
	{Kind: "site.drivers", Low: 300 * time.Millisecond, Mid: 60 * sec, High: 5 * mnt, Source: "estimate; a repository that is built already takes under 1 s"},
}

// Disks are the rates of disks, by type.
var Disks = []Disk{
	{"virtio", 25e6, 36e6, fromLab},
	{"nvme", 900e6, 2e9, "estimate: unpacking and checking on the node, below what the disk itself can do"},
	{"sata", 400e6, 500e6, "estimate: below the 600 MB/s of SATA 6 Gb/s"},
	{"sas", 200e6, 220e6, "estimate: a disk that turns"},
	{"", 400e6, 500e6, "estimate: type of the disk not given"},
}
