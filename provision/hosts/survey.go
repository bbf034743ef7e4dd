// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/uniform"
)

// What a hardware block can have at most.
const (
	mostGPUs    = 128
	mostDisks   = 128 // of one kind and size
	mostSockets = 16
	mostCores   = 4096
	mostDIMMs   = 512
)

// surveyWait bounds the first look at a host: each program has a limit of its own.
const surveyWait = 5 * time.Minute

// survey is what a host was seen to be made of.
type survey struct {
	name string
	arch inventory.Arch
	hw   wire.Hardware
	seen look.Seen
}

// takeSurveys looks at all hosts of a fleet. It returns why some could not be looked at.
func takeSurveys(ctx context.Context, f *fleet) ([]survey, map[string]error) {
	var mu sync.Mutex
	var list []survey
	failed := map[string]error{}
	each(f.names(), func(name string) {
		s, err := takeSurvey(ctx, f, name)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed[name] = err
			return
		}
		list = append(list, s)
	})
	slices.SortFunc(list, func(a, b survey) int { return strings.Compare(a.name, b.name) })
	return list, failed
}

// takeSurvey asks the agent what there is, and the programs of its GPUs what they are.
func takeSurvey(ctx context.Context, f *fleet, name string) (survey, error) {
	ctx, cancel := context.WithTimeout(ctx, surveyWait)
	defer cancel()
	var b wire.Baseline
	if err := onnode.Agent(ctx, f, name, wire.BaselineParams{Bare: true, Hardware: true}, &b, "baseline"); err != nil {
		return survey{}, err
	}
	s := survey{name: name, arch: f.nodes[name].arch}
	if b.Hardware != nil {
		s.hw = *b.Hardware
	}
	own := &inventory.Hardware{}
	for vendor, n := range countGPUs(s.hw) {
		own.GPUs = append(own.GPUs, inventory.GPU{Vendor: vendor, Count: n})
	}
	var err error
	s.seen, _, err = look.ReadNode(ctx, f, name, own)
	return s, err
}

// countGPUs counts the GPUs on the PCI bus, by vendor.
func countGPUs(hw wire.Hardware) map[string]int {
	n := map[string]int{}
	for _, p := range hw.PCI {
		for name, id := range judge.Vendors {
			if judge.IsGPU(p.Class) && p.Vendor == id {
				n[name]++
			}
		}
	}
	return n
}

// gpus are the GPUs as a hardware block says them.
func (s survey) gpus() []inventory.GPU {
	var list []inventory.GPU
	count := countGPUs(s.hw)
	for _, vendor := range slices.Sorted(maps.Keys(count)) {
		if count[vendor] > mostGPUs {
			continue // parts of GPUs, such as virtual functions
		}
		list = append(list, inventory.GPU{Vendor: vendor, Count: count[vendor], Model: s.gpuModel(vendor), Interconnect: s.interconnect(vendor)})
	}
	return list
}

// gpuModel is what the driver calls the GPUs, or else their PCI id.
func (s survey) gpuModel(vendor string) string {
	names := map[string]bool{}
	if l := s.seen.NVIDIA; vendor == "nvidia" && l != nil {
		for _, g := range l.GPUs {
			names[g.Name] = true
		}
	}
	if r := s.seen.AMD; vendor == "amd" && r != nil {
		for _, g := range r.GPUs {
			if g.Static != nil {
				names[cmp.Or(g.Static.ProductName, g.Static.Name, g.Static.Model)] = true
			}
		}
	}
	delete(names, "")
	if len(names) == 0 {
		for _, p := range s.hw.PCI {
			if judge.IsGPU(p.Class) && p.Vendor == judge.Vendors[vendor] {
				names["PCI "+p.Vendor+":"+p.Device] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}

// interconnect is what joins the GPUs: NVSwitches where they are in a fabric.
func (s survey) interconnect(vendor string) string {
	if vendor == "amd" {
		if s.seen.AMD != nil && len(s.seen.AMD.Links) > 0 {
			return "xgmi"
		}
		return ""
	}
	if s.seen.NVIDIA != nil {
		for _, g := range s.seen.NVIDIA.GPUs {
			if g.Fabric.State != "" && g.Fabric.State != "N/A" {
				return "nvswitch"
			}
		}
	}
	if s.seen.Links != nil {
		for _, g := range s.seen.Links.GPUs {
			for _, l := range g.Links {
				if l.Active != nil {
					return "nvlink"
				}
			}
		}
	}
	return ""
}

// diskSet is a set of equal disks.
type diskSet struct {
	kind  string // of the language: nvme, sata, virtio
	size  int64
	count int
}

// label is the size as makers print it: 960GB, 3.84TB.
func (d diskSet) label() string {
	if d.size < 1e12 {
		return fmt.Sprintf("%dGB", (d.size+5e8)/1e9)
	}
	return strconv.FormatFloat(math.Round(float64(d.size)/1e10)/100, 'f', -1, 64) + "TB"
}

// disks are the fixed disks, by kind and size.
func (s survey) disks() []diskSet {
	var list []diskSet
	for _, d := range s.hw.Disks {
		kind := d.Type
		if kind == "ssd" || kind == "hdd" {
			kind = "sata"
		}
		i := slices.IndexFunc(list, func(x diskSet) bool { return x.kind == kind && x.size == d.Size })
		if i < 0 {
			i, list = len(list), append(list, diskSet{kind: kind, size: d.Size})
		}
		list[i].count++
	}
	list = slices.DeleteFunc(list, func(d diskSet) bool { return d.count > mostDisks || d.size <= 0 })
	slices.SortFunc(list, func(a, b diskSet) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), cmp.Compare(a.size, b.size))
	})
	return list
}

// memory is what is built in, or where the firmware does not say it what the kernel
// has, in whole GiB.
func (s survey) memory() unit.Bytes {
	if s.hw.Memory.Installed > 0 {
		return unit.Bytes(s.hw.Memory.Installed)
	}
	return unit.Bytes((s.hw.Memory.Usable + 1<<29) >> 30 << 30)
}

// What is compared of the parts of hosts, in the order in which it is shown.
const (
	partVendor  = "vendor"
	partProduct = "product"
	partBoot    = "firmware's boot mode"
	partCPU     = "CPU"
	partSockets = "CPU sockets"
	partCores   = "CPU cores"
	partMemory  = "memory"
	partDIMMs   = "DIMMs"
	partGPUs    = "GPUs"
	partDisks   = "disks"
)

// traits are the parts as text, for the comparison of hosts.
func (s survey) traits() []uniform.Trait {
	var gpus, disks []string
	for _, g := range s.gpus() {
		gpus = append(gpus, strings.TrimSpace(fmt.Sprintf("%d x %s %s", g.Count, g.Model, g.Interconnect)))
	}
	for _, d := range s.disks() {
		disks = append(disks, fmt.Sprintf("%d x %s %s (%d bytes)", d.count, d.kind, d.label(), d.size))
	}
	var list []uniform.Trait
	for _, t := range []uniform.Trait{
		{Key: partVendor, Value: s.hw.Identity.Vendor}, {Key: partProduct, Value: s.hw.Identity.Product}, {Key: partBoot, Value: s.hw.Firmware}, {Key: partCPU, Value: s.hw.CPU.Model},
		{Key: partSockets, Value: countText(s.hw.CPU.Sockets, mostSockets)}, {Key: partCores, Value: countText(s.hw.CPU.Cores, mostCores)},
		{Key: partMemory, Value: s.memory().String()}, {Key: partDIMMs, Value: countText(s.hw.Memory.DIMMs, mostDIMMs)},
		{Key: partGPUs, Value: cmp.Or(strings.Join(gpus, ", "), "none")}, {Key: partDisks, Value: cmp.Or(strings.Join(disks, ", "), "none")},
	} {
		if t.Value = strings.TrimSpace(t.Value); t.Value != "" {
			list = append(list, t)
		}
	}
	return list
}

// countText is a count that is known when it is not 0, nor more than can be.
func countText(n, most int) string {
	if n <= 0 || n > most {
		return ""
	}
	return fmt.Sprint(n)
}

// macs are the MAC addresses of a host, which no other has.
func (s survey) macs() string {
	var list []string
	for _, n := range s.hw.NICs {
		if n.MAC != (addr.MAC{}) {
			list = append(list, n.MAC.String())
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}
