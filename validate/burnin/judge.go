// SPDX-License-Identifier: Apache-2.0

package burnin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// Spare is how many degrees a GPU under load must stay below its slowdown. Source:
// the limits of other acceptance suites, which take 5.
const Spare = 5.0

// slowdownLimit is the distance at which GPUs that state no other slow down:
// nvidia-smi -q of H100 and later says so of all.
const slowdownLimit = -2.0

const (
	DoHeat  = "Look at its heat sink or cold plate, its thermal paste, the fans, and the air or water that comes in; then apply again."
	doBrake = "Look at the node's power supplies, at both feeds and at the PDU's breakers and readings, before the GPU: the chassis told the GPU to draw less because a supply was missing, failed or overloaded."
	doSlow  = "Look at the node's power supplies and at the GPU's cooling; the BMC's event log says which it was. If neither has a fault, have the GPU replaced."
	DoPace  = "Compare its clocks under load, its power limit and its partition mode (amd-smi static --partition, nvidia-smi -q) with those of a good one, and reset it; if nothing differs, have it replaced: a part of its units does no work."
	doWrong = "Have the GPU replaced: it computes wrong results, or fails, under load."
	doRun   = "Read what the program printed; run it on the node by hand."
)

// Seen is what was seen of a node during a burn-in.
type Seen struct {
	Result wire.BurnResult
	Names  map[string]string // what the GPUs are called, by address
	// Before and After are the node as its health checks look at it: error counters, and
	// limits of temperature and power.
	Before, After look.Seen
}

// judging collects faults by part.
type judging struct {
	Seen
	load   Load
	faults []judge.Fault
	notes  []string
}

// Judge returns the parts that are suspected, and sentences about what is worth
// knowing and no fault. An error means that the GPUs were not loaded: nothing can
// be said of them.
func Judge(load Load, long time.Duration, s Seen) ([]judge.Fault, []string, error) {
	j := &judging{Seen: s, load: load}
	if err := j.ran(long); err != nil {
		return nil, nil, err
	}
	j.program()
	j.exited()
	j.present()
	j.answered()
	for _, g := range s.Result.GPUs {
		j.checkClocks(g)
		j.warm(g)
		j.drew(g)
	}
	j.throttled()
	j.memory()
	j.controllers()
	j.links()
	j.hbm()
	if r := s.Result; r.Blind > 0 || r.Looks == 0 {
		j.notes = append(j.notes, strings.TrimSuffix(fmt.Sprintf("%d of %d looks at the GPUs saw nothing: %s", r.Blind, r.Looks, strings.Join(r.Without, "; ")), ": "))
	}
	return j.faults, j.notes, nil
}

// LeftItems returns how many degrees were left to each GPU's slowdown at its hottest moment, by
// address; of GPUs whose driver states no limit there is nothing.
func LeftItems(load Load, s Seen) map[string]float64 {
	j, all := &judging{Seen: s, load: load}, map[string]float64{}
	for _, g := range s.Result.GPUs {
		if left, ok := j.thermalMargin(g); ok {
			all[g.Address] = left
		}
	}
	return all
}

// ran refuses what is no burn-in.
func (j *judging) ran(long time.Duration) error {
	r := j.Result
	switch {
	case r.Exit == 127:
		return errkind.New(errkind.Unsupported, "nothing loads the GPUs: there is no %s on the node", j.load.Program).Do(j.load.Comes)
	case r.Ended == "":
	case r.Seconds < long.Seconds():
		return errkind.New(errkind.Interrupted, "the burn-in was ended after %s of %s: %s", time.Duration(r.Seconds)*time.Second, long, r.Ended).Do("Apply again.")
	default:
		j.fail("burn-in program", doRun, fmt.Sprintf("%s ran for %s", j.load.Program, time.Duration(r.Seconds)*time.Second), "%s was told to load the GPUs for %s, and %s", j.load.Program, long, r.Ended)
	}
	return nil
}

// IsHeld reports whether something that is a fault of its own held the clocks down.
func IsHeld(g wire.BurnGPU) bool { return g.Held[brake]+g.Held[thermal]+g.Held[soft]+g.Held[slow] > 0 }

// fail notes what is wrong with a part. Several faults of one part are one.
func (j *judging) fail(part, action, evidence, cause string, args ...any) {
	cause = fmt.Sprintf(cause, args...)
	i := slices.IndexFunc(j.faults, func(f judge.Fault) bool { return f.Part == part })
	if i < 0 {
		j.faults = append(j.faults, judge.Fault{Part: part, Cause: part + ": " + cause, Evidence: []string{evidence}, Action: action})
		return
	}
	f := &j.faults[i]
	if len(f.Evidence) < 12 && !slices.Contains(f.Evidence, evidence) {
		f.Evidence = append(f.Evidence, evidence)
	}
	if strings.Count(f.Cause, ";") < 3 {
		f.Cause += "; " + cause
	}
}

// part is what to call the GPU at an address.
func (j *judging) part(address string) string { return NameGPU(j.Names, address) }

// NameGPU is what to call the GPU at an address; names are those that are known.
func NameGPU(names map[string]string, address string) string {
	return cmp.Or(names[address], "GPU at "+address)
}

// Reasons that hold clocks down and are faults, as nvidia-smi calls them.
const (
	brake   = "hw_power_brake_slowdown"
	thermal = "hw_thermal_slowdown"
	soft    = "sw_thermal_slowdown"
	slow    = "hw_slowdown"
)

// checkClocks reports clocks that the hardware held down. The power limit always does so under
// full load, and is no fault.
func (j *judging) checkClocks(g wire.BurnGPU) {
	part := j.part(g.Address)
	looks := func(reason string) string {
		return fmt.Sprintf("nvidia-smi: %s was Active at %d of %d looks; %s", reason, g.Held[reason], g.Core.Count, FormatFigures(g))
	}
	switch {
	case g.Held[brake] > 0:
		j.fail(part, doBrake, looks(brake), "the chassis' power brake held its clocks down under load")
	case g.Held[thermal] > 0:
		j.fail(part, DoHeat, looks(thermal), "heat held its clocks down under load, at %.0f °C", g.Core.Most)
	case g.Held[soft] > 0:
		j.fail(part, DoHeat, looks(soft), "heat made the driver lower its clocks under load, at %.0f °C", g.Core.Most)
	case g.Held[slow] > 0:
		j.fail(part, doSlow, looks(slow), "the hardware held its clocks down under load and says not why")
	}
}

// FormatFigures returns those of a GPU in words.
func FormatFigures(g wire.BurnGPU) string {
	text := fmt.Sprintf("%.0f °C at most", g.Core.Most)
	if g.Memory.Count > 0 {
		text += fmt.Sprintf(", memory %.0f °C", g.Memory.Most)
	}
	if g.Power.Count > 0 {
		text += fmt.Sprintf(", %.0f W on average", g.Power.Mean)
	}
	return text
}

// warm holds temperatures against the slowdown.
func (j *judging) warm(g wire.BurnGPU) {
	part := j.part(g.Address)
	switch left, ok := j.thermalMargin(g); {
	case !ok || left >= Spare || g.Held[thermal]+g.Held[soft] > 0: // which says so already
	case left <= 0:
		j.fail(part, DoHeat, "under load: "+FormatFigures(g), "it reached its slowdown, %.0f °C", g.Core.Most)
	default:
		j.fail(part, DoHeat, "under load: "+FormatFigures(g), "it came within %.0f °C of its slowdown (%.0f °C): fewer than %.0f were left", left, g.Core.Most, Spare)
	}
	if g.MemLeft.Count > 0 && g.MemLeft.Least < Spare {
		j.fail(part, DoHeat, "under load: "+FormatFigures(g), "its memory came within %.0f °C of its limit (%.0f °C)", max(g.MemLeft.Least, 0), g.Memory.Most)
	}
}

// thermalMargin is how many degrees were left to the slowdown at the hottest moment; false
// where the driver states no limit.
func (j *judging) thermalMargin(g wire.BurnGPU) (float64, bool) {
	limits := nvidiasmi.Temperature{}
	if gpu, ok := j.nvidia(g.Address); ok {
		limits = gpu.Temperature
	}
	switch {
	case j.load.Vendor == "amd":
		return g.Left.Least, g.Left.Count > 0
	case g.Left.Count > 0 && limits.SlowdownLimit != nil:
		return g.Left.Least - *limits.SlowdownLimit, true
	case g.Left.Count > 0:
		return g.Left.Least - slowdownLimit, true
	case limits.Slowdown != nil && g.Core.Count > 0:
		return *limits.Slowdown - g.Core.Most, true
	}
	return 0, false
}

func (j *judging) nvidia(address string) (nvidiasmi.GPU, bool) {
	if j.After.NVIDIA == nil {
		return nvidiasmi.GPU{}, false
	}
	i := slices.IndexFunc(j.After.NVIDIA.GPUs, func(g nvidiasmi.GPU) bool { return g.BusID == address })
	if i < 0 {
		return nvidiasmi.GPU{}, false
	}
	return j.After.NVIDIA.GPUs[i], true
}

// loadedShare is the part of its power limit that a GPU draws at least when it is
// loaded.
const loadedShare = 0.5

// drew notes a GPU that was hardly loaded.
func (j *judging) drew(g wire.BurnGPU) {
	gpu, ok := j.nvidia(g.Address)
	if !ok || gpu.Power.Limit == nil || g.Power.Count == 0 || g.Power.Most >= loadedShare**gpu.Power.Limit {
		return
	}
	j.notes = append(j.notes, fmt.Sprintf("%s drew %.0f W at most of %.0f W: it was hardly loaded", j.part(g.Address), g.Power.Most, *gpu.Power.Limit))
}

// memory holds the memory of the host against none: an error that was corrected
// costs nothing, and the next one may not be. Source: the node checks of GCM
// (facebookresearch/gcm), where ce_count of a node does not rise.
func (j *judging) memory() {
	before := map[string]wire.MemoryErrors{}
	for _, m := range j.Before.Health.Memory {
		before[m.Controller] = m
	}
	for _, m := range j.After.Health.Memory {
		if was, ok := before[m.Controller]; ok && m.Corrected > was.Corrected {
			j.fail("memory", "Have the DIMM replaced: dmesg and the BMC's event log name its slot.", fmt.Sprintf("EDAC %s: ce_count %d before and %d after", m.Controller, was.Corrected, m.Corrected),
				"memory controller %s corrected %d errors under load, %.1f a minute", m.Controller, m.Corrected-was.Corrected, float64(m.Corrected-was.Corrected)*60/max(j.Result.Seconds, 1))
		}
	}
}

// sortedKeys returns the keys of a map in their order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
