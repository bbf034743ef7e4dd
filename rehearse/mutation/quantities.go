// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// ofKinds is a physical quantity of the simulator, by the method that changes it: the kinds of
// faults that change it, which bench/score holds against what the checks name; or the
// reason why no kind does.
type ofKinds struct {
	kinds []fault.Kind
	why   string
}

func of(kinds ...fault.Kind) ofKinds { return ofKinds{kinds: kinds} }

// quantities are those of a node's hardware (metal.Node) and of links (model.Model).
var quantities = map[string]ofKinds{
	"Node.CapCores":        of(fault.SlowCPU),
	"Node.LoseChannel":     of(fault.SlowMemory),
	"Node.ThrottleDisk":    of(fault.SlowDisk),
	"Node.SlowNetwork":     of(fault.SlowNetwork),
	"Node.LimitPackets":    of(fault.PathMTU),
	"Node.AddDisk":         {why: "a disk that is added is no fault: the rehearsals of disks add one, and nothing is erased by it"},
	"Node.DarkenNVLinks":   of(fault.NVLinkDown, fault.NVLinkUnseated),
	"Node.DisableSMT":      of(fault.SMTOff),
	"Node.DisturbNVLink":   of(fault.NVLinkErrors),
	"Node.DisturbPCIe":     of(fault.PCIeErrors),
	"Node.ExchangeBays":    {why: "the order of bays is no fault: disks are found by their places and serial numbers, as the rehearsals of disks show"},
	"Node.FixMTU":          of(fault.WrongMTU),
	"Node.FlipBits":        of(fault.DIMMErrors),
	"Node.FlashNIC":        of(fault.OddFirmware),
	"Node.Hang":            of(fault.KernelHang),
	"Node.IdleUnits":       of(fault.DeadCores),
	"Node.HideTPM":         of(fault.TPMOff),
	"Node.InsulateGPU":     of(fault.HotGPU),
	"Node.NarrowPCI":       of(fault.PCIeWidth),
	"Node.PlugModule":      of(fault.WrongOptic),
	"Node.PutDIMM":         {why: "a module that is exchanged is a repair: the history of parts notes it"},
	"Node.RedirectPCI":     {why: "open: redirection by ACS is judged by a gate and has no kind of fault"},
	"Node.RemoveDIMM":      of(fault.MissingDIMM),
	"Node.RemovePCI":       of(fault.MissingGPU, fault.MissingNIC),
	"Node.Replace":         {why: "a chassis that is exchanged is a repair: the identity check stops at it"},
	"Node.ReplaceDIMM":     of(fault.SmallDIMM, fault.SlowDIMM),
	"Node.ReplaceDisk":     {why: "a disk that is exchanged is a repair: the history of parts notes it"},
	"Node.Scale":           {why: "it changes the quantities that `rehearse/virtual/quantity` names, each by 20 % below"},
	"Model.Scale":          {why: "the same of a port"},
	"Node.ReplacePCI":      of(fault.WrongGPU, fault.WrongNIC),
	"Node.ResetNVRAM":      {why: "firmware that lost its boot order boots from the network again: no part is at fault"},
	"Node.SetCPUModel":     of(fault.WrongCPU),
	"Node.SetDiskModel":    of(fault.WrongDisk),
	"Node.SetGPUMemory":    of(fault.GPURowRemap, fault.GPUXid, fault.WeakHBM, fault.LessHBM),
	"Node.SetLink":         {why: "it shows what the model of links has; the quantities are those of the model"},
	"Node.SetSerial":       of(fault.WrongSerial),
	"Node.SlowGPU":         of(fault.SlowGPU),
	"Node.StickBit":        of(fault.WrongResults),
	"Node.SlowPCI":         of(fault.PCIeSpeed),
	"Node.SplitNUMA":       of(fault.NUMASplit),
	"Node.StickPause":      of(fault.RailConfig),
	"Node.WearDisk":        of(fault.WornDisk),
	"Model.SetDown":        of(fault.LinkDown),
	"Model.SetErrors":      of(fault.DegradedLink, fault.HighBER),
	"Model.SetLanes":       of(fault.DegradedLink),
	"Model.SetNICShare":    of(fault.SlowNIC),
	"Model.SetSwitchShare": of(fault.BadLeaf, fault.BadSpine),
	"Model.SetTrunkDown":   of(fault.DeadTrunk),
	"Model.SetTrunkErrors": of(fault.TrunkErrors),
	"Model.SetTrunkShare":  of(fault.SlowTrunk),
	"Model.Swap":           of(fault.CableSwap),
}

// readers are methods that change no quantity of the hardware.
var readers = []string{
	"Node.Boot", "Node.DIMM", "Node.DIMMSize", "Node.Disks", "Node.FS", "Node.Functions", "Node.GPUs", "Node.Hangs", "Node.Identity", "Node.Installed", "Node.Kernel", "Node.LoadGPUs", "Node.Loaded",
	"Node.Name", "Node.Ports", "Node.Root", "Node.Scales", "Node.System",
	"Model.AllReduce", "Model.Carry", "Model.Counters", "Model.Leaf", "Model.Nodes", "Model.Port", "Model.Ports", "Model.State", "Model.SwitchCounters", "Model.Write",
}

// writeQuantities adds the quantities to the page.
func writeQuantities(b *strings.Builder) {
	b.WriteString("\n## Quantities of the simulator\n\nEach is changed by kinds of faults, of which `bench/score` says whether the part is named; one without a kind has a reason.\n\n| quantity | kinds of faults, or why none |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(quantities)) {
		q := quantities[name]
		text := q.why
		for i, k := range q.kinds {
			if i > 0 {
				text += ", "
			}
			text += "`" + string(k) + "`"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, text)
	}
}
