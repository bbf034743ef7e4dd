// SPDX-License-Identifier: Apache-2.0

package burnin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/tool/dcgmi"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
)

const (
	doVanished = "Read dmesg of the node (Xid 79: it has fallen off the bus) and the BMC's event log; power the node off and on, reseat the GPU's board and look at its power cables; then have it replaced."
	doUnloaded = "Run the program by hand on this GPU alone, and read dmesg: the GPU was not loaded, and nothing is proven of it."
)

// toldShare is the part of the looks at which a GPU tells its temperature at least: nvidia-smi
// prints [N/A] or [GPU is lost] for one that does not answer. Belief: a driver that is busy
// skips single looks.
const toldShare = 0.9

// gpusOf are the addresses of the GPUs of a vendor that the bus or their driver lists.
func gpusOf(vendor string, s look.Seen) (bus, driver []string) {
	for _, l := range s.Health.PCI {
		if judge.IsGPU(l.Class) && l.Vendor == judge.Vendors[vendor] {
			bus = append(bus, l.Address)
		}
	}
	if s.NVIDIA != nil && vendor == "nvidia" {
		for _, g := range s.NVIDIA.GPUs {
			driver = append(driver, g.BusID)
		}
	}
	if s.AMD != nil && vendor == "amd" {
		for _, g := range s.AMD.GPUs {
			if g.Partition == nil || *g.Partition == 0 {
				driver = append(driver, g.BDF)
			}
		}
	}
	return bus, driver
}

// gpusBefore are the GPUs that were there before the load, by address.
func (j *judging) gpusBefore() []string {
	bus, driver := gpusOf(j.load.Vendor, j.Before)
	all := slices.Concat(bus, driver)
	slices.Sort(all)
	return slices.Compact(all)
}

// present reports GPUs that were there before the load and that the bus, the driver or the
// looks under load lack. Where nothing says which there were, the hardware block says how many.
func (j *judging) present() {
	var watched []string
	for _, g := range j.Result.GPUs {
		watched = append(watched, g.Address)
	}
	bus, driver := gpusOf(j.load.Vendor, j.After)
	wasOnBus, was := gpusOf(j.load.Vendor, j.Before)
	before := j.gpusBefore()
	for _, list := range []struct {
		was, of     []string
		cause, name string
	}{
		{wasOnBus, bus, "it was there before the load and is not on the PCI bus any more", "the PCI bus"},
		{was, driver, "it was there before the load, and its driver does not list it any more", "its driver"},
		{before, watched, "its sensors said nothing under load, and those of others did", "the looks under load"},
	} {
		for _, at := range list.was {
			if len(list.of) > 0 && !slices.Contains(list.of, at) {
				j.fail(j.part(at), doVanished, fmt.Sprintf("%s: %s", list.name, strings.Join(list.of, " ")), "%s", list.cause)
			}
		}
	}
	if len(was) > 0 && len(driver) == 0 {
		j.fail("GPU driver", doVanished, fmt.Sprintf("before the load: %s", strings.Join(was, " ")), "it listed %d GPUs before the load, and lists none after it", len(was))
	}
	if have := len(watched); len(before) == 0 && have > 0 && have < j.load.GPUs {
		j.fail("GPUs", doVanished, "under load: "+strings.Join(watched, " "), "%d of %d told of themselves under load", have, j.load.GPUs)
	}
}

// answered reports GPUs that often told no temperature under load while others of the node
// did, and notes other sensors of which this is so.
func (j *judging) answered() {
	looks := j.Result.Looks - j.Result.Blind
	for _, sensor := range []struct {
		name string
		of   func(wire.BurnGPU) wire.Span
	}{
		{"temperature", func(g wire.BurnGPU) wire.Span { return g.Core }},
		{"memory temperature", func(g wire.BurnGPU) wire.Span { return g.Memory }},
		{"power", func(g wire.BurnGPU) wire.Span { return g.Power }},
		{"clock", func(g wire.BurnGPU) wire.Span { return g.Clock }},
		{"distance to its slowdown", func(g wire.BurnGPU) wire.Span { return g.Left }},
		{"distance to its memory's limit", func(g wire.BurnGPU) wire.Span { return g.MemLeft }},
	} {
		often := func(g wire.BurnGPU) bool { return float64(sensor.of(g).Count) >= toldShare*float64(looks) }
		if !slices.ContainsFunc(j.Result.GPUs, often) {
			continue
		}
		for _, g := range j.Result.GPUs {
			switch n := sensor.of(g).Count; {
			case often(g):
			case sensor.name == "temperature":
				j.fail(j.part(g.Address), doVanished, fmt.Sprintf("under load: %d temperatures in %d looks", n, looks), "it did not answer at %d of %d looks under load, and other GPUs did", looks-n, looks)
			default:
				j.notes = append(j.notes, fmt.Sprintf("%s told its %s at %d of %d looks: it was not judged by more, and other GPUs told theirs", j.part(g.Address), sensor.name, n, looks))
			}
		}
	}
}

// deployment is the category of DCGM's tests of the software, which load nothing.
const deployment = "deployment"

// untested reports GPUs that DCGM did not load while it loaded others. Results that do not say
// which GPUs they are of are of all.
func (j *judging) untested(c dcgmi.Content) {
	tested := map[int]bool{}
	for _, t := range c.Tests {
		if strings.EqualFold(t.Category, deployment) {
			continue
		}
		for _, r := range t.Results {
			if r.Status != dcgmi.Pass && r.Status != dcgmi.Fail && r.Status != dcgmi.Warn {
				continue
			}
			for _, word := range strings.Split(r.Entities, ",") {
				number, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(word, "GPU")))
				if err != nil {
					return
				}
				tested[number] = true
			}
		}
	}
	addresses := map[string]bool{}
	for number := range tested {
		if at := j.addressOf(number); at != "" {
			addresses[at] = true
		}
	}
	j.unloaded(len(tested), addresses, fmt.Sprintf("dcgmi diag: results of GPUs %v", slices.Sorted(maps.Keys(tested))))
}

// unloaded reports GPUs that the program has no result of, while it has some of others: how
// many it tested, and where those are, as far as that is known.
func (j *judging) unloaded(tested int, addresses map[string]bool, evidence string) {
	before := j.gpusBefore()
	want := cmp.Or(len(before), j.load.GPUs)
	if tested == 0 || tested >= want {
		return
	}
	if len(addresses) < tested || len(before) < want {
		j.fail("GPUs", doUnloaded, evidence, "%s has results of %d of %d", j.load.Program, tested, want)
		return
	}
	for _, at := range before {
		if !addresses[at] {
			j.fail(j.part(at), doUnloaded, evidence, "%s has no result of it", j.load.Program)
		}
	}
}

// exited reports a program that failed though all that it printed is good.
func (j *judging) exited() {
	if j.Result.Exit != 0 && j.Result.Ended == "" && len(j.faults) == 0 {
		j.fail("burn-in program", doRun, j.programText(), "%s ended with exit status %d, and no result of it says why", j.load.Program, j.Result.Exit)
	}
}

// controllers notes memory controllers of the host that told their errors at one of the two
// looks alone.
func (j *judging) controllers() {
	names := func(list []wire.MemoryErrors) map[string]bool {
		all := map[string]bool{}
		for _, m := range list {
			all[m.Controller] = true
		}
		return all
	}
	before, after := names(j.Before.Health.Memory), names(j.After.Health.Memory)
	for _, name := range sortedKeys(before) {
		if !after[name] {
			j.notes = append(j.notes, fmt.Sprintf("memory controller %s told its errors before the load and not after it: what it corrected under load is not known", name))
		}
	}
	for _, name := range sortedKeys(after) {
		if !before[name] {
			j.notes = append(j.notes, fmt.Sprintf("memory controller %s told its errors after the load and not before it: what it corrected under load is not known", name))
		}
	}
}
