// SPDX-License-Identifier: Apache-2.0

package mutation

// physicsReasons are those of changes of the simulated hardware.
var physicsReasons = []Reason{
	{Why: "What another check of the site judges: power, space and weight where the site's files are checked and where nodes are switched on, which rail a port is of by the cabling; into how many ports a NIC is split by the step that sets it; power supplies that are gone are found by the BMC (`NVIDIA Chassis.Parts[power supply]`). Numbers that a block does not give are 0, and given they ask more of the same node.", Fields: []string{
		"hardware BootTimeout +",
		"hardware Console.Baud +",
		"hardware Disks[].Size.Lower +",
		"hardware Disks[].Size.Upper +",
		"hardware NICs[].Ports[].Rail -+",
		"hardware NICs[].Split +",
		"hardware PageSize +",
		"hardware Power.Inrush -+",
		"hardware Power.Liquid +",
		"hardware Power.Max -+",
		"hardware Power.Required -+",
		"hardware Power.Supplies -+",
		"hardware Power.Typical -+",
		"hardware RackUnits +",
		"hardware Weight +",
	}},
	{Why: "Faster, cooler, more, or less heat to take away: it slows no job. Of cooler GPUs the burn-in shows the temperature.", Fields: []string{
		"quantity air at a GPU's heat sink, GPU -",
		"quantity bandwidth of a disk, disk +",
		"quantity bandwidth of a port, port +",
		"quantity bandwidth of the host's memory, node +",
		"quantity clock of a GPU under load, GPU +",
		"quantity heat of a GPU's memory, GPU -",
		"quantity lanes of a PCIe link, NIC +",
		"quantity number of a GPU's NVLinks, GPU +",
		"quantity resistance of a GPU's heat sink, GPU -",
		"quantity speed of a PCIe link, NIC +",
		"quantity temperature at which a GPU slows down, GPU +",
		"quantity what a GPU computes, GPU +",
		"quantity what a core computes, node +",
	}},
	{Why: "A fifth more is less than what healthy GPUs of a slot differ by: air of 32 instead of 27 degrees, a heat sink that is 7.9 degrees worse at 700 W (from 8 on it is a fault), memory that is 2 degrees warmer than its chip more than others'.", Fields: []string{
		"quantity air at a GPU's heat sink, GPU +",
		"quantity heat of a GPU's memory, GPU +",
		"quantity resistance of a GPU's heat sink, GPU +",
	}},
	{Why: "At rest: clocks and power of a GPU without load follow its driver's mood; the load is what is judged. How soon a GPU warms shows nothing after ten minutes.", Fields: []string{
		"quantity clock of a GPU at rest, GPU -+",
		"quantity power of a GPU at rest, GPU -+",
		"quantity time in which a GPU warms, GPU -+",
	}},
	{Why: "A fifth stays within what disks and transceivers are allowed: 80 of 100 % spare blocks, a threshold of 8 or 12 %, hours of use; light differs with length, make and age, and a link that has too little makes errors.", Fields: []string{
		"quantity hours of a disk, disk -+",
		"quantity light that a transceiver receives, NIC -+",
		"quantity light that a transceiver sends, NIC -+",
		"quantity spare blocks at which a disk warns, disk -+",
		"quantity spare blocks of a disk, disk -+",
	}},
	{Why: "No check measures the latency of a port: a fifth of 1.9 microseconds is 75 metres of fibre, or another number of switches, and no fault of a part; what retransmits or is congested shows in bandwidth and counters.", Fields: []string{
		"quantity latency of a port, port -+",
	}},
}
