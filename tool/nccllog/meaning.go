// SPDX-License-Identifier: Apache-2.0

package nccllog

import "github.com/ironrail/ironrail/internal/lazyregexp"

// meaning is what a warning means, and what to do about it.
type meaning struct {
	at           *lazyregexp.Regexp
	text, action string
}

// meanings are tried in this order. Numbers of completions are ibv_wc_status of
// rdma-core's verbs.h, those of calls errno of Linux; vendor error 129 is the
// retry counter of mlx5.
var meanings = []meaning{
	{lazyregexp.New(`(?:Got completion|completion) .*(?:status=(?:IBV_WC_RETRY_EXC_ERR\()?12\b|error 12\b)`),
		"the other side did not acknowledge: its link is down, its process ended, or the path between the two GIDs does not carry packets (IBV_WC_RETRY_EXC_ERR)",
		"Look at both ends' ports and counters; on RoCE also at PFC and at the GID index; of several such pairs, the one end that they share is the suspect."},
	{lazyregexp.New(`(?:Got completion|completion) .*(?:status=(?:IBV_WC_RNR_RETRY_EXC_ERR\()?13\b|error 13\b)`),
		"the other side had no buffer ready for too long (IBV_WC_RNR_RETRY_EXC_ERR): its process is stuck", "Look at what the other rank does; its GPU may hang."},
	{lazyregexp.New(`(?:Got completion|completion) .*(?:status=(?:IBV_WC_LOC_PROT_ERR\()?4\b|error 4\b)`),
		"the NIC may not access the memory that it was given (IBV_WC_LOC_PROT_ERR): GPUDirect does not work between this GPU and this NIC", "Look at nvidia_peermem or dma-buf, ACS and IOMMU of that node."},
	{lazyregexp.New(`(?:Got completion|completion) .*(?:status=(?:IBV_WC_REM_ACCESS_ERR\()?10\b|error 10\b)`),
		"the other side refused access to its memory (IBV_WC_REM_ACCESS_ERR)", "Look at the first error of the other rank."},
	{lazyregexp.New(`(?:Got completion|completion) .*(?:status=(?:IBV_WC_WR_FLUSH_ERR\()?5\b|error 5\b)`),
		"a request was dropped because its queue pair had failed before (IBV_WC_WR_FLUSH_ERR): an echo", "Look for an earlier warning with another number."},
	{lazyregexp.New(`ibv_modify_qp\w* failed with (?:error )?(?:61\b|No data available)`),
		"the GID index is empty on this port: addresses changed after the index was chosen", "Compare the GID tables of both ends (`show_gids`), and NCCL_IB_GID_INDEX."},
	{lazyregexp.New(`ibv_modify_qp\w* failed with (?:error )?(?:101\b|Network is unreachable)`),
		"there is no route from this GID to the other", "Compare addresses, subnets and routes of both ends on that rail."},
	{lazyregexp.New(`ibv_modify_qp\w* failed with (?:error )?(?:22\b|Invalid argument)`),
		"the two GIDs do not fit together, such as an IPv6 link-local one on one side and IPv4 on the other, or the MTU is not that of the port", "Compare GID type, GID index and RDMA MTU of both ends."},
	{lazyregexp.New(`ibv_modify_qp\w* failed with (?:error )?(?:110\b|113\b|Connection timed out|No route to host)`),
		"the hardware address of the other side could not be found: no answer to ARP or neighbour discovery on that rail", "Ping the other side's address from this interface; look at VLAN and cable of that rail."},
	{lazyregexp.New(`ibv_reg_\w*mr\w* failed`),
		"memory could not be registered with the NIC", "Look at the limit of locked memory (`ulimit -l`), and for GPU memory at nvidia_peermem or dma-buf."},
	{lazyregexp.New(`ibv_create_(?:cq|qp)\w* failed`),
		"the NIC gave no queue", "Look at the limit of locked memory (`ulimit -l`) and at how many processes share the NIC."},
	{lazyregexp.New(`Remote (?:IB|RDMA) device is incompatible`),
		"one side is InfiniBand and the other is RoCE", "Give NCCL_IB_HCA the same kind of devices on every node."},
	{lazyregexp.New(`[Aa]sync(?: non-fatal)? event ?:? ?.*port error|async event: port error`),
		"a port of the network went down while it was used", "Look at that port's cable and counters, and at the switch port."},
	{lazyregexp.New(`Device \d+ marked as failed|[Dd]etected \d+ failed devices`),
		"a NIC failed while it was used", "Look at the kernel log of that node, and at that port's cable and counters."},
	{lazyregexp.New(`mixed local Net device counts`),
		"ranks do not find the same number of NICs", "Compare the NET/IB lines of every node: a NIC or its link is missing on some."},
	{lazyregexp.New(`CUDA Driver version found is`), "the driver is too old for this library", "Put the version of the driver on every node that the library asks for."},
	{lazyregexp.New(`async fatal event`), "the NIC reports a fatal error of a queue pair", "Look at the kernel log of that node."},
	{lazyregexp.New(`GID table changed`), "addresses of a port changed while it was used", "Look at what configures that interface."},
	{lazyregexp.New(`(?:Connect|connect)\w* .*(?:Connection refused)`),
		"nobody listens there: the rank on that address ended, or a firewall rejects", "Look at the first error of the ranks on that node; check the firewall and NCCL_SOCKET_IFNAME."},
	{lazyregexp.New(`(?:Connect|connect)\w* .*(?:No route to host|Network is unreachable|timed out)`),
		"that address cannot be reached: another interface was chosen than the one that connects the nodes, or a firewall drops", "Set NCCL_SOCKET_IFNAME to the interface that all nodes share."},
	{lazyregexp.New(`[Cc]onnection closed by (?:remote )?peer|Connection reset by peer|[Rr]emote process exited`),
		"another rank ended first: an echo", "Look for the rank whose log ends first, or that has another warning."},
	{lazyregexp.New(`[Nn]o (?:socket )?interface found|Could not find any (?:local )?(?:IP|socket)`),
		"no interface fits NCCL_SOCKET_IFNAME", "Compare the names of interfaces on every node."},
	{lazyregexp.New(`Duplicate GPU detected`), "two ranks were given the same GPU", "Give each rank a GPU of its own: ranks a node, CUDA_VISIBLE_DEVICES."},
	{lazyregexp.New(`(?:shared memory|/dev/shm).*(?:No space|failed|error)|Error while creating shared memory`),
		"/dev/shm is full or too small, as it is in containers by default", "Give the container more shared memory (--shm-size) or its host's (--ipc=host)."},
	{lazyregexp.New(`(?i)nvls|multicast|MNNVL|fabric (?:handle|UUID)`),
		"multicast or memory across the NVSwitches could not be set up", "Look at the Fabric Manager and, across nodes, at IMEX; NCCL_NVLS_ENABLE=0 goes around it."},
	{lazyregexp.New(`(?i)(?:cuda|hip) failure.*out of memory`), "the GPU has no memory left", "Look for another process on that GPU."},
	{lazyregexp.New(`(?i)(?:cuda|hip) failure.*(?:uncorrectable|ECC)`), "the GPU reports an uncorrectable memory error", "Take the node out and look at its Xid messages and row remapping."},
	{lazyregexp.New(`(?i)(?:cuda|hip) failure.*(?:not yet initialized|802)`), "the Fabric Manager does not run, or not in the version of the driver", "Look at nvidia-fabricmanager of that node."},
	{lazyregexp.New(`(?i)(?:cuda|hip) failure`), "a call of the GPU's driver failed", "Look at the kernel log of that node for Xid or amdgpu messages."},
	{lazyregexp.New(`[Mm]ismatch\w* .*version|version.* mismatch`), "ranks have different versions of the library", "Put the same version on every node."},
	{lazyregexp.New(`network (.+) not found|Failed to (?:open|initialize) .*(?:libibverbs|NET plugin)`), "the network that was asked for could not be loaded", "Look at NCCL_NET, at the plugin, and at libibverbs on every node."},
	{lazyregexp.New(`iommu=pt`), "the kernel was not started with iommu=pt, with which transfers between GPUs may hang", "Add iommu=pt to the kernel's arguments, or switch the IOMMU off."},
	{lazyregexp.New(`(?i)numa.*balancing`), "automatic NUMA balancing is on", "Set kernel.numa_balancing to 0."},
	{lazyregexp.New(`(?i)timeout|timed out`), "something did not happen in time", "Look at which rank is missing."},
}

// ExplainWarning returns what a warning means and what to do about it; both are empty for
// one that is not known.
func ExplainWarning(warning string) (text, action string) {
	for _, m := range meanings {
		if m.at.MatchString(warning) {
			return m.text, m.action
		}
	}
	return "", ""
}
