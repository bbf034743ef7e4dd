// SPDX-License-Identifier: Apache-2.0

package mutation

// sources are what is changed, by the word that begins a field.
var sources = map[string]string{
	"NVIDIA":    "a node with NVIDIA's GPUs at rest: `ironrail-agent health` and `baseline`, `nvidia-smi -q -x` and `nvlink`, the kernel's log, chronyd, and its chassis by the BMC; judged by the gates and the comparison of its role. It is read off a simulated node, by the programs' texts; logs of disks, transceivers and the chassis are composed",
	"AMD":       "what `amd-smi` says of a node with AMD's GPUs, of outputs of the real one; judged by the same",
	"burn-in":   "`ironrail-agent burn`, and the host's memory errors before and after, composed; judged by the burn-in of NVIDIA's GPUs and the comparison of slots",
	"bandwidth": "the figures of nvbandwidth, composed; judged by the floors and the node's median",
}

// notCovered are kinds of evidence that are not changed here, and are open.
var notCovered = []string{
	"Open: transfers between pairs, collectives, counters of ports and sweeps of the subnet (`validate/pair`, `validate/collective`, `validate/rail`): `bench/score` plants faults there, and no field is changed by itself.",
	"Open: what switches, subnet managers, IMEX and LLDP answer (`fabric`), and how nodes sort packets (`wire.RoCEResult`).",
	"Open: the texts of ib_write_bw, nccl-tests, rvs and dcgmi as they are printed: the tests of their readers change them in single places.",
	"Open: a burn-in of AMD's GPUs, and that each quantity of the simulator is changed by 20 %: its kinds of faults change them by fixed amounts, below.",
	"Versions that `firmware` of a hardware block asks for, and the BMC's own firmware.",
}
