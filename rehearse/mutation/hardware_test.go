// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
	"github.com/ironrail/ironrail/validate/bandwidth"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/burnin/cohort"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/speed"
	"github.com/ironrail/ironrail/validate/transfer"
)

// measured is all that is read of a virtual node: at rest, under the load of its GPUs, and
// by the programs that measure.
type measured struct {
	Rest  atRest
	Burn  burnin.Seen
	Speed wire.Speed
	Moves bandwidth.Output
}

// burnLong is how long the virtual nodes are burnt in.
const burnLong = 10 * time.Minute

// workshop is virtual nodes of which four are well, and some are made of other hardware.
type workshop struct {
	*systemtest.Rig
	t    *testing.T
	h    *inventory.Hardware // of those that are well
	four [4]measured
}

// wellHardware is the block of nodes that are well.
func wellHardware(h *inventory.Hardware) {
	h.Memory = inventory.Memory{Size: 512 << 30, DIMMs: 8}
	h.Disks = []inventory.Disk{{Name: "os", Type: "nvme", Count: 2, Size: unit.Limit[unit.Bytes]{Op: unit.Printed, Value: 3_840_000_000_000}}}
	h.GPUs = []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 4, Memory: 81559 << 20, Interconnect: "nvswitch"}}
	h.Power = inventory.Power{Typical: 4000, Max: 6000, Supplies: 2, Required: 1, Inrush: 7000}
}

// openWorkshop boots four nodes that are well and one of each of the other blocks.
func openWorkshop(t *testing.T, others []*inventory.Hardware) *workshop {
	t.Helper()
	inv := systemtest.NewSite(4+len(others), 4, 400e9)
	w := &workshop{t: t, h: inv.Nodes[0].Hardware}
	wellHardware(w.h)
	image := *inv.Nodes[0].Image
	image.Packages = append(slices.Clone(image.Packages), "chrony", "nvbandwidth", "datacenter-gpu-manager-4-cuda12")
	for _, n := range inv.Nodes {
		n.Image = &image
	}
	for i, h := range others {
		n, _ := inv.Node(fmt.Sprintf("n%d", 5+i))
		n.Hardware = h
	}
	w.Rig = systemtest.NewWithParts(t, inv)
	w.Wait()
	for i := range w.four {
		w.four[i] = w.read(fmt.Sprintf("n%d", i+1), true)
	}
	return w
}

// read reads a node, as the checks of the product do. Where its GPUs are not to be loaded, what
// was seen of the first node under load stands for it.
func (w *workshop) read(node string, loaded bool) (m measured) {
	w.t.Helper()
	ctx := w.t.Context()
	must := func(what string, err error) {
		if err != nil {
			w.t.Fatalf("%s: %s: %v", node, what, err)
		}
	}
	w.Sh(node, "modprobe nvidia; systemctl start nvidia-dcgm")
	m.Rest = w.atRest(ctx, node)
	must("speed", onnode.Agent(ctx, w, node, wire.SpeedParams{Memory: 2, CPU: 3, Disk: 2, Bytes: 2 << 30}, &m.Speed, "speed"))
	var err error
	m.Moves, err = bandwidth.TakeFigures(ctx, w, node, "nvidia", w.h)
	if err != nil {
		m.Moves.Absent = err.Error()
	}
	if !loaded {
		m.Burn = w.four[0].Burn
		return m
	}
	load := burnin.Of(w.h, burnLong)
	m.Burn = burnin.Seen{Names: judge.PartNames(w.h, m.Rest.Seen), Before: m.Rest.Seen}
	must("burn", onnode.Agent(ctx, w, node, wire.BurnParams{Program: load.Argv, Vendor: load.Vendor, Every: burnin.Every.Seconds(), Limit: (burnLong + burnin.Grace).Seconds()}, &m.Burn.Result, "burn"))
	m.Burn.After, _, err = look.ReadNode(ctx, w, node, w.h)
	must("look", err)
	return m
}

// atRest reads a node as the gates and the comparison of its role do.
func (w *workshop) atRest(ctx context.Context, node string) atRest {
	w.t.Helper()
	seen, _, err := look.ReadNode(ctx, w, node, w.h)
	if err != nil {
		w.t.Fatal(err)
	}
	var b wire.Baseline
	if err := onnode.Agent(ctx, w, node, wire.BaselineParams{Bare: true}, &b, "baseline"); err != nil {
		w.t.Fatal(err)
	}
	seen.Fabrics = []string{"rail"}
	return atRest{seen, b.Items, chassisOf()}
}

// judge is what all checks say when the first node is another one.
func (w *workshop) judge(first measured) (v verdict) {
	four := w.four
	four[0] = first
	var rest [4]atRest
	var burnt []cohort.Node
	var fast []speed.Node
	load := burnin.Of(w.h, burnLong)
	for i, m := range four {
		name := fmt.Sprintf("n%d", i+1)
		rest[i] = m.Rest
		links, read := burnin.Links(m.Burn)
		burnt = append(burnt, cohort.Node{Name: name, GPUs: m.Burn.Result.GPUs, Names: m.Burn.Names, Rates: burnin.Rates(load, m.Burn), Links: links, LinksTold: read})
		fast = append(fast, speed.Node{Name: name, Record: speed.NewRecord(m.Speed, speed.Limits{})})
	}
	v = judgeAtRest(w.h)(rest)
	b := judgeBurnIn(w.h.GPUs[0], first.Burn, burnt)
	v.faults, v.notes, v.others = append(v.faults, b.faults...), append(v.notes, b.notes...), append(v.others, b.others...)
	s := judgeSpeeds(fast)
	v.faults, v.notes, v.others = append(v.faults, s.faults...), append(v.notes, s.notes...), append(v.others, s.others...)
	if first.Moves.Absent != "" {
		v.faults = append(v.faults, first.Moves.Absent)
		return v
	}
	m := judgeMoves(w.h, first.Moves)
	v.faults, v.notes = append(v.faults, m.faults...), append(v.notes, m.notes...)
	return v
}

// found says whether checks find what differs from nodes that are well.
func (w *workshop) found(t *testing.T, what string, base verdict, v verdict) bool {
	t.Helper()
	if len(v.others) > 0 {
		t.Errorf("%s: other nodes are blamed: %q", what, v.others)
	}
	return len(v.faults) > 0 || tells(base.notes, v.notes)
}

// block is a hardware block without what points elsewhere, so that its numbers can be walked.
func block(h *inventory.Hardware) *inventory.Hardware {
	b := *h
	b.GPUs, b.Disks, b.NICs = slices.Clone(h.GPUs), slices.Clone(h.Disks), slices.Clone(h.NICs)
	for i := range b.NICs {
		b.NICs[i].Fabric, b.NICs[i].Network = nil, nil
		b.NICs[i].Ports = slices.Clone(b.NICs[i].Ports)
	}
	return &b
}

// numbersOf are the fields of a block that are numbers, but for places in files.
func numbersOf(h *inventory.Hardware) (list []field) {
	for _, f := range fieldsOf(reflect.ValueOf(h).Elem()) {
		if strings.Contains(f.path, "Decl") || strings.Contains(f.path, "Ranges") || f.drop != nil {
			continue
		}
		switch f.get.Kind() {
		case reflect.Int, reflect.Int64, reflect.Float64, reflect.Uint64:
			list = append(list, f)
		}
	}
	return list
}

// otherBlocks are blocks of which one number is another, by the field and the change.
func otherBlocks(h *inventory.Hardware) (keys []string, blocks []*inventory.Hardware) {
	for i, f := range numbersOf(block(h)) {
		for _, c := range []Change{Lowered, Raised} {
			b := block(h)
			if !numbersOf(b)[i].change(c, nil) {
				continue
			}
			for k := range b.NICs {
				b.NICs[k].Fabric, b.NICs[k].Network = h.NICs[k].Fabric, h.NICs[k].Network
			}
			keys, blocks = append(keys, "hardware "+f.path+" "+string(c)), append(blocks, b)
		}
	}
	return keys, blocks
}

// placesOf are the parts of which a quantity is changed, by their kind.
func (w *workshop) placesOf(name quantity.Name) map[string]string {
	m := w.Metal["n1"]
	first := func(vendor, class string) string { return m.Functions(vendor, class)[0] }
	gpu, nic, disk := first("10de", "0302"), first("15b3", "02"), first("144d", "0108")
	switch name {
	case quantity.PCIeWidth, quantity.PCIeSpeed:
		return map[string]string{"GPU": gpu, "NIC": nic, "disk": disk}
	case quantity.DIMMSize, quantity.DIMMSpeed:
		return map[string]string{"module": "0"}
	case quantity.MemoryRate, quantity.CoreRate:
		return map[string]string{"node": ""}
	case quantity.DiskRate, quantity.DiskSpare, quantity.DiskSpareLeast, quantity.DiskHours:
		return map[string]string{"disk": disk}
	case quantity.PortMTU, quantity.LightSent, quantity.LightReceived:
		return map[string]string{"NIC": nic}
	case quantity.PortRate, quantity.PortLatency:
		return map[string]string{"port": ""}
	}
	return map[string]string{"GPU": gpu}
}

// TestPhysics lowers and raises each physical quantity of the simulated hardware of one node of
// four, and each number of its hardware block, by 20 %: the node's programs show what comes of
// it, and the checks judge that.
func TestPhysics(t *testing.T) {
	t.Parallel()
	listed, err := excused()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		example := *systemtest.NewSite(1, 4, 400e9).Nodes[0].Hardware
		wellHardware(&example)
		keys, blocks := otherBlocks(&example)
		w := openWorkshop(t, blocks)
		defer w.Stop()
		base := w.judge(w.four[0])
		if len(base.faults)+len(base.others) > 0 {
			t.Fatalf("nodes that are well have faults: %q, %q", base.faults, base.others)
		}
		missed, total := map[string]string{}, 0
		miss := func(key string) {
			i := strings.LastIndexByte(key, ' ')
			missed[key[:i]] += key[i+1:]
		}
		for i, key := range keys {
			total++
			if !w.found(t, key, base, w.judge(w.read(fmt.Sprintf("n%d", 5+i), false))) {
				miss(key)
			}
		}
		for _, name := range quantity.All {
			places := w.placesOf(name)
			for _, kind := range slices.Sorted(maps.Keys(places)) {
				for c, by := range map[Change]float64{Lowered: 0.8, Raised: 1.2} {
					total++
					key := fmt.Sprintf("quantity %s, %s %c", name, kind, c)
					if !w.changed(t, key, base, name, kind, places[kind], by) {
						miss(key)
					}
				}
			}
		}
		t.Logf("%d changes, %d fields have a reason", total, len(missed))
		compare(t, "quantity", missed, listed)
		compare(t, "hardware", missed, listed)
	})
}

// underLoad are the quantities that show while the GPUs are loaded.
var underLoad = []quantity.Name{quantity.GPUAir, quantity.GPURest, quantity.GPULimit, quantity.GPUResistance, quantity.GPUMemoryHeat, quantity.GPUSlow, quantity.GPUIdle, quantity.GPUBoost, quantity.GPUWarming, quantity.GPUCompute}

// changed reports whether checks find a quantity that is changed.
func (w *workshop) changed(t *testing.T, key string, base verdict, name quantity.Name, kind, at string, by float64) bool {
	t.Helper()
	if kind == "port" {
		return w.portChanged(t, key, name, by)
	}
	m := w.Metal["n1"]
	m.Scale(name, at, by)
	defer m.Scale(name, at, 1)
	return w.found(t, key, base, w.judge(w.read("n1", slices.Contains(underLoad, name))))
}

// portChanged is changed of a port of the network.
func (w *workshop) portChanged(t *testing.T, key string, name quantity.Name, by float64) bool {
	t.Helper()
	id := model.PortID{Node: "n1", NIC: "rail"}
	scale := func(by float64) {
		if err := w.Model.Scale(id, name, by); err != nil {
			t.Fatal(err)
		}
	}
	scale(by)
	defer scale(1)
	var v verdict
	var all []*transfer.Transfer
	for i := range 4 {
		for k := range 4 {
			if i == k {
				continue
			}
			from, to := fmt.Sprintf("n%d", i+1), fmt.Sprintf("n%d", k+1)
			flow, err := w.Model.Write(model.Question{Test: "write_bw", From: model.PortID{Node: from, NIC: "rail"}, To: model.PortID{Node: to, NIC: "rail"}, Size: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			end := func(node string) rail.End {
				n, _ := w.Inv.Node(node)
				return rail.End{Node: n, Need: rail.Need{Least: 45e9}}
			}
			all = append(all, &transfer.Transfer{From: end(from), To: end(to), Bw: flow.Average, FromLeaf: "leaf-1", ToLeaf: "leaf-1", Tries: 1})
		}
	}
	transfer.Compare(all)
	for _, x := range all {
		if x.Bad() {
			v.add(map[bool]string{true: "n1"}[x.From.Node.Name == "n1" || x.To.Node.Name == "n1"], x.Name())
		}
	}
	return w.found(t, key, verdict{}, v)
}
