// SPDX-License-Identifier: Apache-2.0

package recognise

import "github.com/ironrail/ironrail/internal/lazyregexp"

// head is how a line looks with which an output of a kind begins, or goes on
// where another program wrote in between. It finds what stands in a file beside
// the output that is read: see parts.
type head struct {
	kind    string
	has     string // a text that every such line has, by which it is looked for first; empty: none
	pattern *lazyregexp.Regexp
	above   int  // how many lines of the output stand above it
	again   bool // stands once in an output: a second one begins another output of the kind
}

// together are the kinds whose lines are one output wherever they stand: logs,
// and tests of which one file may hold several.
var together = map[string]bool{"nccl-tests": true, "nccl-log": true, "perftest": true, "dmesg": true, "fabricmanager": true, "opensm-log": true}

// formed are the kinds whose outputs have several forms, which are read apart: a
// list of GPUs, a matrix, CSV. Each head is a form of its own, but those that are
// named here by their text.
var formed = map[string]map[string]string{
	"amd-smi":       {},
	"ibnetdiscover": {`"`: "topology", "Topology file": "topology"},
	"iblinkinfo":    {},
	"sonic-show":    {"PFC0": "pfc", "Capability codes": "lldp", "LocalPort": "lldp"},
}

// unique are the kinds of which an output has each thing once, and how a head
// names it: the second line of the same device begins another output.
var unique = map[string]*lazyregexp.Regexp{
	"lspci":       lazyregexp.New(`(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]`),
	"ibstat":      lazyregexp.New(`'[^']+'`),
	"ibstatus":    lazyregexp.New(`'[^']+' port \d+`),
	"ibv_devinfo": lazyregexp.New(`^hca_id:.*`),
	"rdma-link":   lazyregexp.New(`\S+/\d+`),
}

// heads is the list of them, by kind; "json" is a document of any. A kind that a person takes for another one
// at its first line, as rccl-tests, needs none: what a part is of, its whole text
// says.
var heads = []head{
	{"amd-smi", "AMD-SMI", lazyregexp.New(`^\| AMD-SMI `), 0, true},
	{"amd-smi", "GPU: ", lazyregexp.New(`^GPU: \d+\s*$`), 0, false},
	{"amd-smi", "POWER", lazyregexp.New(`^GPU +(?:XCP +)?POWER`), 0, false},
	{"amd-smi", "gpu,", lazyregexp.New(`^gpu,[a-z]`), 0, false},
	{"amd-smi", ":", lazyregexp.New(`^(?:(?:ACCESS|WEIGHT|HOPS|LINK TYPE|NUMA BW|LINK METRIC|CACHE COHERANCY|ATOMICS|DMA|BI-DIRECTIONAL) TABLE|XGMI LINK STATUS):`), 0, false},
	{"dcgmi", "| ", lazyregexp.New(`^\s*\| +(?:Diagnostic +\| Result|NvLink Link Status +\||Health Monitor Report +\|)`), 0, true},
	{"dcgmi", "Entity", lazyregexp.New(`^\s*# ?Entity\s+\S`), 0, false},
	{"dcgmi", "found.", lazyregexp.New(`^\d+ GPUs? found\.`), 0, true},
	{"dmesg", "", lazyregexp.New(`^(?:<\d+>)?\[ *\d+\.\d{6}\] |^\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]+ \d{4}\] `), 0, false},
	{"dmesg", " kernel: ", lazyregexp.New(`^(?:(?:\pL{2,5}\.?|\d{1,2}月) +\d+ [\d:]+|\d{4}-\d\d-\d\dT\S+) \S+ kernel: `), 0, false},
	{"ethtool", "Settings for ", lazyregexp.New(`^Settings for \S+:`), 0, true},
	{"ethtool-S", "NIC statistics:", lazyregexp.New(`^NIC statistics:`), 0, true},
	{"ethtool-S", "Standard stats for ", lazyregexp.New(`^Standard stats for \S+:`), 0, true},
	{"ethtool-i", "driver: ", lazyregexp.New(`^driver: \S`), 0, true},
	{"ethtool-m", "Identifier", lazyregexp.New(`^\s*Identifier\s+: 0x`), 0, true},
	{"fabricmanager", "[tid ", lazyregexp.New(`^\[[^\]]+\] \[[A-Z]+\] \[tid \d+\] `), 0, false},
	{"ibdev2netdev", "==>", lazyregexp.New(` port \d+ (?:\([^)]*\) )?==> \S+ \(`), 0, false},
	{"ibdiagnet", "Load Plugins from:", lazyregexp.New(`^Load Plugins from:`), 1, true},
	{"ibdiagnet", "-I- ", lazyregexp.New(`^-I- \S`), 0, false},
	{"ibdiagnet-db", "START_", lazyregexp.New(`^START_[A-Z][A-Z0-9_]*\s*$`), 0, false},
	{"iblinkinfo", ":", lazyregexp.New(`^(?:CA|Switch)(?: \([^)]*\))?: .*:\s*$`), 0, false},
	{"iblinkinfo", "==(", lazyregexp.New(`^0x[0-9a-f]+ +".*==\(`), 0, false},
	{"ibnetdiscover", `"`, lazyregexp.New(`^(?:Switch|Ca|Rt)\s+\d+\s+"[SHR]-`), 0, false},
	{"ibnetdiscover", " 0x", lazyregexp.New(`^(?:CA|SW|RT) +\d+ +\d+ 0x`), 0, false},
	{"ibnetdiscover", "Topology file", lazyregexp.New(`^# Topology file: `), 0, true},
	{"ibnetdiscover", ": 0x", lazyregexp.New(`^(?:Ca|Switch|Router)\s*: 0x`), 0, false},
	{"ibqueryerrors", "Errors for ", lazyregexp.New(`^Errors for (?:0x|")`), 0, false},
	{"ibstat", "CA '", lazyregexp.New(`^CA '[^']+'`), 0, false},
	{"ibstat", " '", lazyregexp.New(`^(?:iWARP RNIC|\?\?\?) '[^']+'`), 0, false},
	{"ibstatus", "Infiniband device '", lazyregexp.New(`^Infiniband device '`), 0, false},
	{"ibswinfo", "part number", lazyregexp.New(`^part number +\| `), 3, true},
	{"ibv_devices", "node GUID", lazyregexp.New(`^\s+device\s+node GUID`), 0, true},
	{"ibv_devinfo", "hca_id:", lazyregexp.New(`^hca_id:\s`), 0, false},
	{"ibv_devinfo", "found:", lazyregexp.New(`^\d+ HCAs? found:`), 0, false},
	{"json", "", lazyregexp.New(`^[{\[](?:\s*$|\s*["{\[])`), 0, true},
	{"lldpctl", "LLDP neighbors:", lazyregexp.New(`^LLDP neighbors:`), 1, true},
	{"lldpctl", ", via: ", lazyregexp.New(`^Interface: +\S+, via: `), 0, false},
	{"lldpctl", "lldp.", lazyregexp.New(`^lldp\.\S+\.(?:via|chassis|port)[.=]`), 0, false},
	{"lspci", ":", lazyregexp.New(`^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] (?:[A-Z0-9"][^:]*(?:: |" ")|[0-9a-f]{4}: )`), 0, false},
	{"lspci", "Slot:", lazyregexp.New(`^Slot:\s`), 0, false},
	{"lspci -t", "]-", lazyregexp.New(`^-(?:\+-)?\[[0-9a-f]{4,8}:[0-9a-f]{2}(?:-[0-9a-f]{2})?\]-`), 0, true}, // a list may stand beside it
	{"mlnx_qos", "DCBX mode:", lazyregexp.New(`^DCBX mode:`), 0, true},
	{"mlxconfig", "Device #", lazyregexp.New(`^Device #\d+:\s*$`), 0, false},
	{"mlxlink", "Operational Info", lazyregexp.New(`^Operational Info(?: \(|\s*$)`), 0, true},
	{"mlxlink", "PCIe Operational", lazyregexp.New(`^PCIe Operational \(Enabled\) Info\s*$`), 0, false},
	{"nccl-log", "NCCL ", lazyregexp.New(`NCCL (?:INFO|WARN|TRACE) `), 0, false},
	{"nccl-tests", "#", lazyregexp.New(`^\s*# *(?:nThread \d|[nr]ccl-tests version|Collective test|Rank +\d|Using devices|Out of bounds|Avg bus|size +count|\(B\) +\(elements\)|Reducing maxBytes)`), 0, false},
	{"nccl-tests", "", lazyregexp.New(`^\s*\d+\s+\d+\s+(?:u?int(?:8|32|64)|half|float|double|bfloat16|f8\w+|fp8\w+)\s`), 0, false},
	{"nccl-tests", "numCycle,", lazyregexp.New(`^numCycle, *(?:collective|name),`), 0, false},
	{"nvbandwidth", "nvbandwidth Version", lazyregexp.New(`^nvbandwidth Version`), 0, true},
	{"nvidia-smi", "NVIDIA-SMI", lazyregexp.New(`^\| NVIDIA-SMI +\d`), 0, true},
	{"nvidia-smi", "NVIDIA-SMI version", lazyregexp.New(`^NVIDIA-SMI version\s*: `), 0, true},
	{"nvidia-smi-q", "NVSMI LOG", lazyregexp.New(`^=+NVSMI LOG=+`), 0, true},
	{"nvidia-smi-qx", "<nvidia_smi_log>", lazyregexp.New(`^\s*<nvidia_smi_log>`), 0, true},
	{"nvidia-smi-l", "(UUID: ", lazyregexp.New(`^GPU \d+: .*\(UUID: `), 0, false},
	{"nvidia-smi-mig", " instance", lazyregexp.New(`^\| (?:GPU|Compute) instances?(?: profiles)?:\s`), 0, false},
	{"nvidia-imex-ctl", "Connectivity Table Legend:", lazyregexp.New(`^Connectivity Table Legend:`), 0, true},
	{"nvidia-imex-ctl", "Node #", lazyregexp.New(`^Node #\d+ +[-*] `), 0, false},
	{"nvidia-smi-topo", "GPU0", lazyregexp.New(`^\s+GPU0\s+(?:GPU1|NIC\d|mlx\w+|CPU Affinity)\b`), 0, true},
	{"nvidia-smi-topo", "GPU0", lazyregexp.New(`^\|[^|]*\|[ *]*GPU0[ *]*\|`), 0, true},
	{"nvidia-smi-dmon", "gpu", lazyregexp.New(`^\s*#\s*(?:Date\s+)?(?:Time\s+)?gpu\s`), 0, false},
	{"nvidia-smi-query", ",", lazyregexp.New(`^(?:index|(?:gpu_)?(?:name|uuid|serial|bus_id)|timestamp|pci\.bus_id|driver_version|count|pid)(?: \[[^\]]+\])?, *[a-z][a-z0-9_]+(?:[ .,]|$)`), 0, true},
	{"opensm-log", "] 0x", lazyregexp.New(`^[A-Z][a-z]{2} +\d+ [\d:]+ \d{6} \[[0-9A-F]+\] 0x[0-9a-fA-F]{2} -> `), 0, false},
	{"perfquery", "# Port ", lazyregexp.New(`^# Port (?:extended )?[cC]ounters`), 0, false},
	{"perftest", " Test", lazyregexp.New(`^ *(?:RDMA_\w+|Send\w*|Atomic\w*(?: [A-Z_]+)?) (?:Bidirectional |Post List )*(?:BW|Latency) (?:Post List |forwarding |Multicast )*Test`), 0, false},
	{"perftest", "#bytes", lazyregexp.New(`^ *#bytes +(?:#sl +)?#iterations`), 0, false},
	{"perftest", "", lazyregexp.New(`^ *\d+ +\d{2,} +\d+\.\d+ +\d+\.\d+ +\d+\.\d+`), 0, false},
	{"rdma-link", "link ", lazyregexp.New(`^link \S+/\d+ .*state `), 0, false},
	{"rocm-smi", "ROCm System Management Interface", lazyregexp.New(`^=+ *ROCm System Management Interface *=+`), 0, false},
	{"rocm-smi", "device,", lazyregexp.New(`^device,[A-Z(]`), 0, false},
	{"rocm-smi", "GPU[", lazyregexp.New(`^GPU\[\d+\]\s*:`), 0, false},
	{"rocminfo", "ROCk module", lazyregexp.New(`^ROCk module .*is (?:NOT )?l`), 0, true},
	{"rocminfo", "HSA System Attributes", lazyregexp.New(`^\s*HSA System Attributes\s*$`), 1, false},
	{"rvs", "[RESULT]", lazyregexp.New(`^\[RESULT\] `), 0, false},
	{"rvs", "(RVS) Summary", lazyregexp.New(`^\| +ROCm Validation Suite \(RVS\) Summary`), 1, false},
	{"saquery", "Record", lazyregexp.New(`^\w+Record(?: group| member)?(?: dump)?:\s*$`), 0, false},
	{"saquery", "SA ClassPortInfo:", lazyregexp.New(`^SA ClassPortInfo:\s*$`), 0, false},
	{"show_gids", "DEV", lazyregexp.New(`^DEV\s+PORT\s+INDEX\s+GID`), 0, true},
	{"sminfo", "sm lid ", lazyregexp.New(`^(?:sminfo: )?sm lid \d+ sm guid 0x`), 0, false},
	{"sonic-show", "Lanes", lazyregexp.New(`^\s*Interface +Lanes +Speed`), 0, false},
	{"sonic-show", "Admin", lazyregexp.New(`^\s*Interface +Oper +Admin`), 0, false},
	{"sonic-show", "IFACE", lazyregexp.New(`^\s*IFACE +STATE +(?:RX_OK|FEC_CORR)`), 0, false},
	{"sonic-show", "Presence", lazyregexp.New(`^\s*Port +Presence`), 0, false},
	{"sonic-show", "Error Status", lazyregexp.New(`^\s*Port +Error Status`), 0, false},
	{"sonic-show", "PFC0", lazyregexp.New(`^\s*Port [RT]x +PFC0`), 0, false},
	{"sonic-show", "TxQ", lazyregexp.New(`^\s*Port +TxQ +Counter/pkts`), 0, false},
	{"sonic-show", "Port", lazyregexp.New(`^\s*Port +(?:PG0|UC0|MC\d+|ALL\d+) `), 1, false},
	{"sonic-show", "Capability codes", lazyregexp.New(`^Capability codes: \(R\) Router`), 0, true},
	{"sonic-show", "LocalPort", lazyregexp.New(`^LocalPort +RemoteDevice +RemotePortID`), 0, false},
	{"sonic-show", ": SFP EEPROM", lazyregexp.New(`^Eth\S*: SFP EEPROM `), 0, false},
}

// shell is a command behind its prompt, or as set -x shows it.
var shell = lazyregexp.New(`^\s*(?:[+$] \S.*|\[?\w[\w.-]*@[^$#]*[$#] \S.*)\s*$`)

// lead is a line that belongs to the output whose first known line stands right
// below it: the border of a table, the time above it, the declaration of XML, the
// command in a shell or as set -x shows it, a warning of infiniband-diags.
var lead = lazyregexp.New(`^\s*(?:\+[-=+]+\+|[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]+ .*\d{4}|<\?xml.*|<!DOCTYPE.*|[+$] \S.*|\[?\w[\w.-]*@[^$#]*[$#] \S.*|ib(?:warn|debug): \[.*)\s*$`)
