// SPDX-License-Identifier: Apache-2.0

// Package maturity says of each part of this program what it was proven on, and what it
// never saw. It is one table, which the command line, every report and the documents show:
// whoever answers for a rack can see what would be the first of its kind there.
package maturity

import (
	"fmt"
	"slices"
)

// Level is the most that a part was proven on; higher is more.
type Level int

// Levels, from the least.
const (
	Simulated Level = iota // our own simulator alone: that both agree proves little
	Peers                  // programs of others, which did not come from this project
	Emulated               // whole machines with real firmware and Linux, in QEMU
	Hardware               // the hardware itself
)

var words = []string{"simulated", "peers", "emulated", "hardware"}

// String returns the level as a word.
func (l Level) String() string { return words[l] }

// MarshalText writes the level as a word.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (l *Level) UnmarshalText(text []byte) error {
	i := slices.Index(words, string(text))
	if i < 0 {
		return fmt.Errorf("%q is none of %q", text, words)
	}
	*l = Level(i)
	return nil
}

// Part is what is known of one part of the program.
type Part struct {
	Name  string   `json:"part"`
	Level Level    `json:"proven_on"`
	On    string   `json:"proven"`          // what it was proven on
	Open  string   `json:"never_seen"`      // what it never saw
	Tests []string `json:"tests,omitempty"` // that show it: functions of the source
}

// Sentence counts parts by what they were proven on; empty where there are none.
func Sentence(parts []Part) string {
	if len(parts) == 0 {
		return ""
	}
	count := make([]int, len(words))
	for _, p := range parts {
		count[p.Level]++
	}
	return fmt.Sprintf("of %d parts of this ironrail, %d were proven on hardware, %d on emulated machines, %d against programs of others and %d on its own simulator alone: ironrail version --maturity has them",
		len(parts), count[Hardware], count[Emulated], count[Peers], count[Simulated])
}

// Parts returns the table, in the order in which a node comes up.
func Parts() []Part {
	return []Part{
		{"network boot", Emulated, "SeaBIOS, OVMF and iPXE of QEMU; dnsmasq, dhcrelay", "firmware of any vendor", []string{"TestPeerBootBIOS", "TestPeerBootUEFI", "TestPeerBootUEFIHTTP", "TestPeerProxyUEFI", "TestPeerRelay"}},
		{"Secure Boot", Emulated, "OVMF with Microsoft's keys; signed loaders of Debian", "firmware of any vendor; shims of Ubuntu and RHEL", []string{"TestPeerSecureBoot", "TestSecureBoot", "TestSecureBootDiskless", "TestSecureBootLayouts", "TestSecureBootRHEL", "TestSecureBootUbuntu"}},
		{"BMCs by IPMI", Peers, "ipmi_sim of OpenIPMI, ipmitool", "a BMC of any vendor", []string{"TestPeerPowerActions", "TestPeerSetBoot", "TestPeerConsole", "TestPeerConsoleTyping", "TestPeerPower", "TestPeerBootAndLocate", "TestPeerEventLog", "TestPeerLoopbackIPMI"}},
		{"consoles over SSH", Peers, "OpenSSH", "a console server or a BMC of any vendor", []string{"TestPeerSSHConsole", "TestPeerConsoleOverSSH"}},
		{"BMCs by Redfish", Peers, "sushy-tools and its client", "a BMC of any vendor; eight are imitated by what they publish", []string{"TestPeerSushyTools", "TestPeerLoopbackRedfish", "TestPeerSushy"}},
		{"PDUs and power shelves", Peers, "clients of net-snmp", "a PDU or shelf of any vendor", []string{"TestPeerNetSNMP", "TestPeerRackOutlets"}},
		{"Debian, disks, volumes, encryption", Emulated, "machines of QEMU, with one disk, RAID, LVM and a TPM of swtpm", "a server; NVMe drives of any vendor", []string{"TestSystem", "TestRAID10", "TestLVM", "TestEncryption", "TestKill", "TestFailure"}},
		{"Ubuntu, RHEL, Rocky, Alma", Emulated, "their ways of installing, with Debian's files; metadata of their releases", "a package of any of them", []string{"TestUbuntuSettings", "TestRHEL", "TestRHELDiskless", "TestRHELRails", "TestRockyDisk"}},
		{"arm64", Emulated, "Debian on a machine of QEMU", "a Grace or any other server", []string{"TestMixed", "TestPeerBootARM64"}},
		{"drivers of NVIDIA and AMD", Peers, "apt, dnf, DKMS and kernels, with packages of Debian and composed ones", "packages of the vendors' own repositories, compilers of CUDA and ROCm", []string{"TestPeerDebianCUDA", "TestPeerDebianROCm", "TestPeerLikeRHELDriver"}},
		{"InfiniBand", Peers, "OpenSM and ibdiags on ibsim", "an HCA or a switch", []string{"TestPeerSubnet", "TestPeerSweep", "TestPeerTakeover"}},
		{"RoCE", Emulated, "soft RoCE between machines of QEMU", "a NIC or a lossless switch", []string{"TestRHELRails", "TestPeerLinuxUEFI"}},
		{"NVLink domains, IMEX", Simulated, "the virtual rack", "an NVSwitch, an NVLink between GPUs", nil},
		{"SONiC switches", Peers, "OpenSSH; SONiC's YANG models in yanglint", "SONiC itself", []string{"TestPeerSwitchOverSSH", "TestPeerYanglintAgrees"}},
		{"settings of NICs", Simulated, "the virtual rack, by what NVIDIA publishes", "mlxconfig on a NIC", nil},
		{"health checks and bandwidths of GPUs", Hardware, "an H100 and an H200, each alone in a virtual machine", "two GPUs together; a GPU of AMD; nodes that ironrail installed", []string{"TestHosts"}},
		{"all-reduce, pairs, burn-in of GPUs", Simulated, "the virtual rack, published outputs; Open MPI between processes", "NCCL or RCCL between nodes, DCGM, a rail", []string{"TestPeerRunBetweenNodes"}},
		{"CPUs, memory, disks, other networks", Emulated, "machines of QEMU, with parts that were made slow", "a server", []string{"TestSpeed", "TestThroughput"}},
		{"Slurm", Peers, "slurmctld and slurmd of Debian 12 (22.05)", "a later release", []string{"TestPeerRealSlurmctld", "TestPeerRealSlurmd", "TestPeerRealDrain"}},
		{"Kubernetes", Peers, "kube-apiserver 1.34 with etcd, where they are installed", "a kubelet with a container runtime", []string{"TestPeerJoinConfiguration", "TestPeerHandOver"}},
		{"crash safety", Emulated, "SIGKILL at each stage, cut connections, power lost while disks are written", "a controller that loses its disk", []string{"TestKill", "TestCut", "TestFailure"}},
		{"web page", Peers, "Chromium, by mouse and keyboard; axe-core", "Firefox, Safari, a screen reader", []string{"TestPeerChromium", "TestPeerClicks", "TestPeerLive", "TestPeerTLS"}},
		{"packages of ironrail", Peers, "apt and dpkg of Debian 12, rpm, skopeo, umoci", "RHEL, Ubuntu, podman, docker", []string{"TestPeerRelease"}},
	}
}
