// SPDX-License-Identifier: Apache-2.0

package mutation

// sources are what is changed, by the word that begins a field.
var sources = map[string]string{
	"NVIDIA":                     "a node with NVIDIA's GPUs at rest: `ironrail-agent health` and `baseline`, `nvidia-smi -q -x` and `nvlink`, the kernel's log, chronyd, and its chassis by the BMC; judged by the gates and the comparison of its role. It is read off a simulated node, by the programs' texts; logs of disks, transceivers and the chassis are composed",
	"AMD":                        "what `amd-smi` says of a node with AMD's GPUs, of outputs of the real one; judged by the same",
	"gst burn-in":                "`ironrail-agent burn` with what rvs printed, and what amd-smi counted before and after, composed; judged by the burn-in of AMD's GPUs and the comparison of slots",
	"burn-in":                    "`ironrail-agent burn`, and the host's memory errors before and after, composed; judged by the burn-in of NVIDIA's GPUs and the comparison of slots",
	"ports":                      "what the ports of nodes counted before a collective and after it, composed; judged by the limits of link errors under load",
	"switches":                   "what both ends of cables between switches counted while transfers loaded them, composed; judged by the trunks' limits and coverage",
	"collectives":                "what collectives gave, composed: all-reduces of one node, a pair, an NVLink domain and a unit of four, and of all nodes; all_gather, alltoall, reduce_scatter and sendrecv of one pair of four, and of all nodes; judged by their floors, their cohort and what runs like them used",
	"quantity":                   "a physical quantity of the simulated hardware of one node of four (`rehearse/virtual/quantity`): its programs show what comes of it at rest, under the load of its GPUs, and in the measurements of its GPUs, its host and its rails; judged by the gates, the comparison of the role, the burn-in, the bandwidths and the floors",
	"hardware":                   "each number of the hardware block of one node of five, judged against the block of the others by the same",
	"ibnetdiscover":              "a sweep of an InfiniBand fabric of four nodes, two leaves and two spines, composed; judged by the comparison of its cables with the site",
	"LLDP":                       "whom the NICs of four nodes hear (`ironrail-agent neighbours`), composed; judged by the comparison of cables with the site and with other nodes",
	"RoCE":                       "`ironrail-agent roce check` of a node, composed; judged by the comparison of its rails with the site",
	"InfiniBand":                 "`ironrail-agent infiniband` of a node, composed; judged by the comparison of its ports with the site",
	"SONiC":                      "the CONFIG_DB of a switch, as the site wants it; judged by the comparison with the site",
	"both ends":                  "how a node's port and its switch sort and pause RDMA, and how the two ends of a cable between switches do, composed; judged by the comparison of both ends",
	"domain":                     "the clique of a node's GPUs, and `nvidia-imex-ctl -N -j` of a domain of four trays, composed after a real one; judged by the comparison of the domain",
	"judged ib_write_bw":         "numbers and words of the text of ib_write_bw; judged by the floor and the cohort of transfers",
	"judged dcgmi":               "the same of `dcgmi diag -j`, with what it says of each GPU's rate; judged by the burn-in",
	"judged rvs":                 "the same of module gst of rvs; judged by the burn-in",
	"judged nvbandwidth":         "the same of nvbandwidth, of four H100; judged by the floors",
	"judged ibqueryerrors":       "the same of ibqueryerrors, of a leaf; judged by the limits of cables between switches",
	"judged interface counters":  "the same of SONiC's `show interfaces counters`",
	"judged saquery and sminfo":  "the same of `saquery SMIR` and `sminfo`, of a master and its standby; judged by the comparison of subnet managers with the site",
	"judged sums in host memory": "the same of the all-reduce in host memory (engine mpi), over three nodes; judged by its own figures and the limit of a site",
	"judged nccl-tests":          "the same of all five programs of nccl-tests, with the library's log; judged as the result of a pair among four",
	"fabric texts":               "the same of what `ironrail read` reads of fabrics: sminfo, saquery, perfquery, ibqueryerrors, iblinkinfo, ibdiagnet, opensm's log, lldpctl, SONiC's `show`, nvidia-imex-ctl",
	"pairs":                      "what transfers between four nodes on one leaf carried, composed; judged by the floor, the cohort and the decoder of parts",
	"ib_write_bw":                "each number of the text as it is printed, that its reader is tested with: what the reader makes of it must become another, or it complains",
	"nccl-tests":                 "the same of nccl-tests and rccl-tests",
	"dcgmi":                      "the same of `dcgmi diag`, as a table and as JSON",
	"rvs":                        "the same of rvs",
	"bandwidth":                  "the figures of nvbandwidth, composed; judged by the floors and the node's median",
	"host":                       "what `ironrail-agent speed` measures of a node's memory, CPUs and disks, composed; judged by the node itself and the comparison of its role",
	"checksums":                  "what `ironrail_checksum` computed on a node's GPUs, composed; judged by the node itself and the comparison of its role",
	"power shelf":                "what the management controller of a power shelf says of its supplies, composed; judged by the step that reads it",
	"network":                    "what both ends of `ironrail-agent throughput` have seen of a boot network, composed; judged by the comparison of a role's nodes",
}

// notCovered are kinds of evidence that are not changed here, and are open.
var notCovered = []string{
	"Settings of switches of other makers than SONiC, which `ironrail` does not read, and NVLink switches and their manager (NMX), which it does not ask: the GPUs' state, clique and links stand for them.",
	"Texts of programs of hosts and GPUs that `ironrail read` alone reads, such as rocm-smi and ethtool.",
	"Numbers that functions of the simulator have within their code, but for tables.",
	"Versions that `firmware` of a hardware block asks for, and the BMC's own firmware.",
	"PDUs, whips and power shelves without a `control` block: nothing reads them, and one that trips is not found while others carry the load.",
	"By how much a fan turns slower, and the current of a PDU's outlet, by a fifth: fans follow the heat, and current the load. A fan that stands still, warm air and a dark feed are kinds of faults.",
}
