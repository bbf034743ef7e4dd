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

// quantities are those of a node's hardware (metal.Node), of links (model.Model), of a node's chassis
// and BMC (chassis.Chassis), and of PDUs (power.Grid, power.PDU).
var quantities = map[string]ofKinds{
	"Node.CapCores":          of(fault.SlowCPU),
	"Node.LoseChannel":       of(fault.SlowMemory),
	"Node.ThrottleDisk":      of(fault.SlowDisk),
	"Node.SlowNetwork":       of(fault.SlowNetwork),
	"Node.LimitPackets":      of(fault.PathMTU),
	"Node.AddDisk":           {why: "a disk that is added is no fault: the rehearsals of disks add one, and nothing is erased by it"},
	"Node.ClearTPM":          {why: "a TPM that was cleared unlocks no volume: `drift` finds it, and an apply enrolls it again (TestEncryption); no part is at fault"},
	"Node.DarkenNVLinks":     of(fault.NVLinkDown, fault.NVLinkUnseated),
	"Node.DisableSMT":        of(fault.SMTOff),
	"Node.DisturbNVLink":     of(fault.NVLinkErrors),
	"Node.DisturbPCIe":       of(fault.PCIeErrors),
	"Node.ExchangeBays":      {why: "the order of bays is no fault: disks are found by their places and serial numbers, as the rehearsals of disks show"},
	"Node.FixMTU":            of(fault.WrongMTU),
	"Node.FlipBits":          of(fault.DIMMErrors),
	"Node.FlashNIC":          of(fault.OddFirmware),
	"Node.FlipLinkType":      of(fault.NICSettingLost),
	"Node.LoseSettings":      of(fault.NICSettingLost),
	"Node.PowerUp":           {why: "power is no fault: cards load what is in their flash"},
	"Node.Hang":              of(fault.KernelHang),
	"Node.IdleUnits":         of(fault.DeadCores),
	"Node.HideTPM":           of(fault.TPMOff),
	"Node.DisableSecureBoot": of(fault.SecureBootOff),
	"Node.UntagPort":         of(fault.UntaggedPort),
	"Node.LoseShim":          of(fault.ModuleKeyMissing),
	"Node.DropKeys":          {why: "a certificate that is lost in service is found by drift (TestDriftOfSecureBoot), and has no kind of fault"},
	"Node.InsulateGPU":       of(fault.HotGPU),
	"Node.NarrowPCI":         of(fault.PCIeWidth),
	"Node.PlugModule":        of(fault.WrongOptic),
	"Node.PutDIMM":           {why: "a module that is exchanged is a repair: the history of parts notes it"},
	"Node.RedirectPCI":       {why: "open: redirection by ACS is judged by a gate and has no kind of fault"},
	"Node.RemoveDIMM":        of(fault.MissingDIMM),
	"Node.RemovePCI":         of(fault.MissingGPU, fault.MissingNIC),
	"Node.Replace":           {why: "a chassis that is exchanged is a repair: the identity check stops at it"},
	"Node.ReplaceDIMM":       of(fault.SmallDIMM, fault.SlowDIMM),
	"Node.ReplaceDisk":       {why: "a disk that is exchanged is a repair: the history of parts notes it"},
	"Node.Scale":             {why: "it changes the quantities that `rehearse/virtual/quantity` names, each by 20 % below"},
	"Model.Scale":            {why: "the same of a port"},
	"Node.ReplacePCI":        of(fault.WrongGPU, fault.WrongNIC),
	"Node.ResetNVRAM":        {why: "firmware that lost its boot order boots from the network again: no part is at fault"},
	"Node.SetCPUModel":       of(fault.WrongCPU),
	"Node.SetDiskModel":      of(fault.WrongDisk),
	"Node.SetGPUMemory":      of(fault.GPURowRemap, fault.GPUXid, fault.WeakHBM, fault.LessHBM),
	"Node.SetLink":           {why: "it shows what the model of links has; the quantities are those of the model"},
	"Node.SetSerial":         of(fault.WrongSerial),
	"Node.SlowGPU":           of(fault.SlowGPU),
	"Node.StickBit":          of(fault.WrongResults),
	"Node.SlowPCI":           of(fault.PCIeSpeed),
	"Node.SplitNUMA":         of(fault.NUMASplit),
	"Node.StickPause":        of(fault.RailConfig),
	"Node.WearDisk":          of(fault.WornDisk),
	"Node.WarmAir":           of(fault.WarmAir),
	"Model.SetDown":          of(fault.LinkDown),
	"Model.SetErrors":        of(fault.DegradedLink, fault.HighBER),
	"Model.SetLanes":         of(fault.DegradedLink),
	"Model.SetNICShare":      of(fault.SlowNIC),
	"Model.SetSwitchShare":   of(fault.BadLeaf, fault.BadSpine),
	"Model.SetTrunkDown":     of(fault.DeadTrunk),
	"Model.SetTrunkErrors":   of(fault.TrunkErrors),
	"Model.SetTrunkShare":    of(fault.SlowTrunk),
	"Model.Swap":             of(fault.CableSwap),
	"Chassis.StopFan":        of(fault.DeadFan),
	"Chassis.WarmAir":        of(fault.WarmAir),
	"Chassis.FailSupply":     of(fault.PSULost, fault.ShelfSupply),
	"Chassis.Mains":          of(fault.PDUTrip),
	"Chassis.Lock":           of(fault.BMCLocked),
	"Chassis.SetAccount":     of(fault.BMCWrongPassword),
	"Chassis.LoseWrites":     of(fault.BMCWriteLost, fault.ModuleKeyMissing),
	"Chassis.Replace":        of(fault.WrongSerial),
	"Chassis.SetTime":        {why: "the clock of a BMC is set by the bring-up itself"},
	"Chassis.Log":            {why: "an entry is what other faults leave behind; critical ones are judged as each field of a chassis (source NVIDIA)"},
	"Chassis.KeepOldLog":     {why: "a log that is full and keeps its oldest entries is a setting: ironrail empties it before the tests"},
	"Chassis.ClearLog":       {why: "who empties the log takes away history and breaks nothing"},
	"Chassis.ResetBMC":       {why: "a BMC that starts again is asked again"},
	"Chassis.SetBIOS":        {why: "settings of the BIOS are compared with the site where it names them; the tests of the integration with BMCs change them"},
	"Chassis.ApplyBIOS":      {why: "the same"},
	"Chassis.Enrol":          {why: "certificates of Secure Boot are added by ironrail itself; one that is not kept is found in the ramdisk, as the tests of the integration with BMCs and TestCompareModuleKey show"},
	"Node.Variables":         {why: "variables of shim are written by the node's own agent; a request that is lost is found after the boot, as TestEnrolMOKFails shows"},
	"Chassis.Update":         {why: "a firmware that is put in place; versions are compared, as `odd-firmware` shows for NICs"},
	"Chassis.Activate":       {why: "the same"},
	"Chassis.SetOverride":    {why: "which device boots next is set for each boot, and read back: `bmc-write-lost`"},
	"Chassis.SetRestore":     {why: "what a node does when its mains come back is a setting that no site names"},
	"Chassis.SetMedia":       {why: "virtual media are not used"},
	"Chassis.SetBoard":       {why: "it joins the chassis and its board"},
	"Chassis.SetPhase":       {why: "how far a boot is; `kernel-hang` and `dhcp-loss` stop it"},
	"Chassis.Press":          {why: "power is switched by ironrail itself"},
	"Grid.Trip":              of(fault.PDUTrip),
	"Grid.Input":             {why: "a feed that is lost looks as `pdu-trip`: every outlet of the PDU is dark"},
	"Grid.MovePlug":          {why: "a plug in another outlet is found by switching on (and by `drift`, TestDriftOfPDUs) where outlets tell their current, and has no kind of fault"},
	"Grid.Close":             {why: "a breaker that is closed again is a repair"},
	"PDU.Switch":             {why: "outlets are switched by ironrail itself"},
}

// readers are methods that change no quantity of the hardware.
var readers = []string{
	"Node.Boot", "Node.DIMM", "Node.DIMMSize", "Node.Disks", "Node.FS", "Node.FromMemory", "Node.Functions", "Node.GPUs", "Node.Hangs", "Node.Identity", "Node.Installed", "Node.Kernel", "Node.LoadGPUs", "Node.Loaded",
	"Node.Name", "Node.OtherType", "Node.Ports", "Node.Root", "Node.Scales", "Node.SecureBoot", "Node.System",
	"Chassis.Accounts", "Chassis.BIOS", "Chassis.BMCStarted", "Chassis.Components", "Chassis.Counters", "Chassis.Entries", "Chassis.Failed", "Chassis.Identity", "Chassis.Keys", "Chassis.Live", "Chassis.LogState",
	"Chassis.Locked", "Chassis.Login", "Chassis.Media", "Chassis.Override", "Chassis.Phase", "Chassis.Power", "Chassis.RestorePolicy", "Chassis.Run", "Chassis.Sensors", "Chassis.Staged", "Chassis.Supplies",
	"Chassis.TakeBoot", "Chassis.Time", "Grid.Board", "Grid.Changed", "Grid.Live", "Grid.PDU", "Grid.Run", "Grid.Trips", "PDU.Read", "PDU.Serve",
	"Model.AllReduce", "Model.Carry", "Model.Counters", "Model.Leaf", "Model.Nodes", "Model.Port", "Model.Ports", "Model.State", "Model.SwitchCounters", "Model.Write", "Node.RefuseKexec", "Node.TakesOver",
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
