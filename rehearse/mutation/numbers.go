// SPDX-License-Identifier: Apache-2.0

package mutation

import "github.com/ironrail/ironrail/rehearse/virtual/quantity"

// figure says what numbers of the simulator are: one of a quantity, evidence that is changed,
// or a reason.
type figure struct {
	quantity quantity.Name
	evidence string // source and path
	why      string
	names    []string // package, name and column
}

// numbers are all that the packages of the simulator hold at their top level.
var numbers = []figure{
	{quantity: quantity.GPUAir, names: []string{"metal.heatRows.air"}},
	{quantity: quantity.GPURest, names: []string{"metal.heatRows.rest"}},
	{quantity: quantity.GPULimit, names: []string{"metal.heatRows.limit"}},
	{quantity: quantity.GPUResistance, names: []string{"metal.heatRows.resistance"}},
	{quantity: quantity.GPUMemoryHeat, names: []string{"metal.heatRows.hbm"}},
	{quantity: quantity.GPUSlow, names: []string{"metal.heatRows.slow"}},
	{quantity: quantity.GPUIdle, names: []string{"metal.heatRows.idle"}},
	{quantity: quantity.GPUBoost, names: []string{"metal.heatRows.boost", "metal.usualClock"}},
	{quantity: quantity.GPUWarming, names: []string{"metal.warming"}},
	{quantity: quantity.GPUMemorySize, names: []string{"system.memoryOf.mib"}},
	{quantity: quantity.GPUMemoryRate, names: []string{"system.gpuMemories.peak", "system.gpuMemories.part"}},
	{quantity: quantity.GPUHostRate, names: []string{"system.pcieShare", "system.pcieCoding", "system.c2cTo", "system.c2cFrom"}},
	{quantity: quantity.GPUPeerRate, names: []string{"system.nvlinkShare", "system.xgmiShare", "system.xgmiLink"}},
	{quantity: quantity.GPUCompute, names: []string{"system.gpuComputes.double", "system.gpuComputes.doublePart", "system.gpuComputes.bf16", "system.gpuComputes.bf16Part"}},
	{quantity: quantity.GPUPowerLimit, names: []string{"system.boardPower.watts"}},
	{quantity: quantity.PCIeWidth, names: []string{"metal.pcieLinks.lanes"}},
	{quantity: quantity.DIMMSpeed, names: []string{"metal.moduleSpeed"}},
	{quantity: quantity.MemoryRate, names: []string{"metal.triadShare", "metal.busBytes"}},
	{quantity: quantity.CoreRate, names: []string{"metal.coreRounds"}},
	{quantity: quantity.DiskRate, names: []string{"metal.nvmeRate", "metal.sataRate", "metal.virtioRate"}},
	{quantity: quantity.DiskHours, names: []string{"metal.factoryHours"}},
	{quantity: quantity.PortRate, names: []string{"model.nicEfficiency", "model.ibHeaders", "model.roceHeaders", "model.softRate", "model.softRateReal", "model.messageRate", "model.rdmaMTU"}},
	{quantity: quantity.PortLatency, names: []string{"model.nodeLatency", "model.hopLatency", "model.softLatency"}},
	{evidence: "collectives Node.Got.BusBW", names: []string{"system.within.busbw", "system.perfPrograms.inside"}},
	{evidence: "collectives Pair.Got.BusBW", names: []string{"system.ncclShare", "system.rcclShare", "system.ncclFlows"}},
	{evidence: "network Received.Bytes", names: []string{"metal.plainLink", "metal.tcpShare", "system.againOf"}},
	{evidence: "ports After", names: []string{"model.integrityRun", "model.recoveryRun", "model.retransmitted"}},
	{evidence: "switches Lower.Errors", names: []string{"subnet.octets"}},
	{evidence: "NVIDIA Seen.NVIDIA.GPUs[].Temperature", names: []string{"system.slowdownLimit", "system.atRest.Core", "system.atRest.Memory", "system.atRest.Limit", "system.atRest.Power", "system.atRest.Clock", "system.atRest.Pace"}},
	{evidence: "NVIDIA Seen.Time", names: []string{"system.timePoll", "system.answered"}},
	{evidence: "hardware Memory.Size", names: []string{"metal.defaultMemory", "metal.largestDIMM"}},
	{evidence: "hardware Disks[].Size", names: []string{"metal.defaultDisk"}},
	{evidence: "hardware NICs[].Speed", names: []string{"metal.lanes", "metal.generations.least", "metal.fastPort"}},
	{evidence: "NVIDIA Chassis.Parts", names: []string{"chassis.CoolAir", "chassis.warmAir", "chassis.turns", "chassis.fans"}},
	{evidence: "burn-in Result.GPUs", names: []string{"metal.powerClock"}},
	{why: "How long the simulator takes, or lets others wait: boots, programs, installs.", names: []string{"metal.initrdTime", "metal.hopeless", "metal.rates.read", "metal.rates.write", "metal.zeroing", "metal.writeCache", "model.retryRound", "system.DefaultBootTime", "system.amberTime", "system.aptFailure", "system.aptHTTPWait", "system.aptRound", "system.aptStart", "system.arpTime", "system.babelGPU", "system.bugReportTime", "system.clientStart", "system.diagStart", "system.linkTime", "system.cardTime", "system.mlxlinkTime", "system.moduleTime", "system.mountTime", "system.mpiPerRank", "system.mpiStart", "system.ncclPerRank", "system.ncclStart", "system.nvbOfGPU", "system.nvbOfPair", "system.checksumRound", "system.nvbStart", "system.packagedUnits", "system.perPackage", "system.pythonTime", "system.retryTime", "system.rvsStart", "system.serverStart", "system.settleTime", "system.probing", "system.startOfTCP", "system.stopTime", "system.userDataTime", "system.forever", "power.rebootFor"}},
	{why: "Numbers of protocols, formats of files and the kernel's interfaces.", names: []string{"metal.luksLabel", "metal.luksRest", "metal.luksSize", "metal.luksSubsystem", "metal.luksText", "metal.luksUUID", "metal.typeEthernet", "metal.typeInfiniBand", "system.cardError", "system.cardNameWidth", "system.cardValueWidth", "metal.AllNVLinks", "metal.entries", "metal.ext4Offset", "metal.gids", "metal.lvmSector", "metal.mdArray", "metal.mdData", "metal.mdDataOffset", "metal.mdDisks", "metal.mdLevel", "metal.mdMagic", "metal.mdMost", "metal.mdName", "metal.mdNumber", "metal.mdOffset", "metal.mdRoles", "metal.moduleLanes", "metal.monitorPage", "metal.pkeySlots", "metal.pvArea", "metal.pvData", "metal.pvHeader", "metal.pvLabel", "metal.pvText", "metal.rootNumber", "metal.rootPort", "metal.typeBIOS", "metal.typeBoard", "metal.typeChassis", "metal.typeEnd", "metal.typeMemoryArray", "metal.typeMemoryDevice", "metal.typeProcessor", "metal.typeSystem", "metal.upstreamPort", "metal.downstreamPort", "model.lowerEnd", "model.upperEnd", "power.raritanClosed", "power.raritanNormal", "power.raritanOff", "power.raritanOn", "power.raritanOpen", "subnet.defaultKey", "subnet.managerGUID", "subnet.master", "subnet.standingBy", "system.firstPID", "system.nvlinkClique", "system.perfPrograms.root", "subnet.otherPriority", "system.firstThroughputPort", "system.segment", "system.sshPort", "system.throughputPorts", "system.changes.since", "system.jobValues"}},
	{why: "Bounds and sizes of the simulator itself.", names: []string{"chassis.logSize", "chassis.maxAccounts", "metal.blockSize", "metal.largestMTU", "metal.maxFile", "metal.maxLinks", "metal.mostChannels", "metal.mostPerSocket", "metal.segmentSize", "model.mostLevels", "power.maxMessage", "power.maxRepetitions", "power.maxVariables", "system.commands", "system.formatStatistics.value", "system.fullOutput", "system.longestArgument", "system.maxIndex", "system.maxInput", "system.maxMessage", "system.maxRelease", "system.maxRepomd", "system.maxSessions", "system.moduleSources", "system.mostLinks"}},
	{why: "How a board is built: parts below a PCIe switch, switches of NVLink, which links fail together. Kinds of faults take them away.", names: []string{"metal.partsOfSwitch", "metal.switches", "system.firstDark"}},
	{why: "How far healthy parts scatter, and coefficients of a formula: one that were another would change all parts alike.", names: []string{"metal.unlikeShare", "model.kneeSharp", "model.mathis", "model.mostLoss", "model.noiseEmulated", "model.noiseNIC", "model.noiseTCP", "model.otherLeaf", "system.gstTolerance"}},
	{why: "What TCP and software RDMA carry between emulated nodes, where no figure of RDMA is judged.", names: []string{"model.emulatedLatency", "model.emulatedTCP", "model.hostTCP", "model.tcpHeaders", "model.tcpLatency", "model.tcpRound", "model.undeclared"}},
	{why: "How much faster fans turn beside one that stands still: their speed follows the heat and is no fault.", names: []string{"chassis.faster"}},
	{why: "Breakers and inrush of power units, which the plan of power-on holds back: no check of a node reads them.", names: []string{"power.DefaultSurge.Mains", "power.DefaultSurge.PowerOn", "power.constant", "power.magnetic", "power.thermal"}},
}
