// SPDX-License-Identifier: Apache-2.0

package nccllog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

// log is of two ranks on two nodes.
const log = `n1:11:11 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
NCCL version 2.28.9+cuda13.0
n1:11:11 [0] NCCL INFO NCCL_IB_HCA set by environment to =mlx5_0,mlx5_1.
n1:11:40 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>
n2:22:50 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB} [RO]; OOB eth0:10.0.0.2<0>
n1:11:40 [0] NCCL INFO Using network IB
n2:22:50 [0] NCCL INFO Assigned NET plugin IB to comm
n1:11:40 [0] NCCL INFO ncclCommInitRankConfig comm 0x5581 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xabc - Init START
n2:22:50 [0] NCCL INFO ncclCommInitRankConfig comm 0x5582 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xabc - Init START
n1:11:40 [0] NCCL INFO NET/IB: GPU Direct RDMA Enabled for HCA 0 'mlx5_0'
n1:11:40 [0] NCCL INFO Channel 00/16 : 0 1
n1:11:40 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA
n1:11:40 [0] NCCL INFO Channel 01/0 : 1[0] -> 0[0] [receive] via NET/IB/1(8)/GDRDMA/Shared
n1:11:40 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
n1:11:40 [0] NCCL INFO 16 coll channels, 16 collnet channels, 8 nvls channels, 16 p2p channels, 2 p2p channels per peer
n1:11:40 [0] NCCL INFO NVLS multicast support is available on dev 0
n1:11:40 [0] NCCL INFO ncclCommInitRankConfig comm 0x5581 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xabc - Init COMPLETE
n2:22:50 [0] NCCL INFO ncclCommInitRankConfig comm 0x5582 rank 1 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0xabc - Init COMPLETE
n1:11:40 [0] NCCL INFO AllReduce: 8589934592 Bytes -> Algo 1 proto 2 time 41000.500000
n1:11:40 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo NVLS_TREE proto LL128 channel{Lo..Hi}={0..1}
`

func problemTexts(problems tool.Problems) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprintf("%s %d: %s", p.Kind, p.Line, p.Text))
	}
	return strings.Join(lines, "\n")
}

func TestParse(t *testing.T) {
	t.Parallel()
	c, problems, err := Parse([]byte(log))
	if err != nil || len(problems) != 0 {
		t.Fatalf("%v\n%s", err, problemTexts(problems))
	}
	got, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":"2.28.9+cuda13.0","ranks":2,"ready":2,"hosts":["n1","n2"],"networks":["IB"],` +
		`"devices":[{"host":"n1","network":"IB","name":"mlx5_0:1","link":"IB"},{"host":"n1","network":"IB","name":"mlx5_1:1","link":"IB"},{"host":"n2","network":"IB","name":"mlx5_0:1","link":"IB"},{"host":"n2","network":"IB","name":"mlx5_1:1","link":"IB"}],` +
		`"gdr":{"enabled":1,"disabled":0},"transports":{"NET/IB/GDRDMA":2,"P2P/CUMEM":1},"channels":{"collective":16,"collnet":16,"nvls":8,"p2p":16},"nvls":true,` +
		`"tuning":[{"collective":"AllReduce","bytes":4096,"algorithm":"NVLSTree","protocol":"LL128","times":1},{"collective":"AllReduce","bytes":8589934592,"algorithm":"Ring","protocol":"Simple","times":1}],` +
		`"settings":{"NCCL_IB_HCA":"=mlx5_0,mlx5_1"},"warnings":[]}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"not direct", log + "n2:22:50 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [receive] via NET/IB/0\n", "inconsistent 0: 2 connections of the network reach GPU memory directly and 1 do not"},
		{"direct on some NICs", log + "n2:22:50 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n", "inconsistent 0: GPUDirect RDMA is enabled for some"},
		{"another network", log + "n2:22:50 [0] NCCL INFO Using network Socket\n", "inconsistent 0: ranks use different networks: IB, Socket"},
		{"a rank is missing", strings.Replace(log, "commId 0xabc - Init COMPLETE\nn1:11:40 [0] NCCL INFO AllR", "commId 0xabc\nn1:11:40 [0] NCCL INFO AllR", 1), "truncated 0: 2 ranks began to connect and only 1 say that they are"},
		{"nobody is ready", strings.ReplaceAll(log, "COMPLETE", "..."), "truncated 0: no rank says"},
		{"a device is missing", strings.Replace(log, "={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}", "mlx5_0:1/IB", 1), "inconsistent 0: n2 uses 1 devices of the network and others use 2"},
		{"warning, twice", log + "\nn1:11:41 [0] transport/net_ib.cc:2453 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<40554> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_0\n" +
			"n1:11:42 [0] transport/net_ib.cc:2453 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<40557> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_0\n", "failed 22: NET/IB: Got completion from peer 10.0.0.2<40554> with status=12 opcode=0 len=0 vendor err 129 (Recv) hca mlx5_0 (2 times): the other side did not acknowledge"},
		{"a time before it", "[2026-03-03 12:11:38] n1:11:41 [0] misc/socket.cc:50 NCCL WARN socketStartConnect: Connect to 10.0.0.2<56821> failed : Connection refused\n", "failed 1: socketStartConnect: Connect to 10.0.0.2<56821> failed : Connection refused: nobody listens there"},
	} {
		_, problems, err := Parse([]byte(c.in))
		if got := problemTexts(problems); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v, got\n%s\nwant %s", c.name, err, got, c.want)
		}
	}
	if _, _, err := Parse([]byte("no log\n")); err == nil {
		t.Error("no log is read as one")
	}
}

func TestMeaning(t *testing.T) {
	t.Parallel()
	for warning, want := range map[string]string{
		"NET/IB : Got completion from peer 10.2.0.5<33092> with error 12, opcode 0, len 0, vendor err 129 (Recv)":                                "did not acknowledge",
		"NET/IB: Got completion from peer 10.1.1.2<1> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RECV_RDMA_WITH_IMM(129) vendor_err=129": "did not acknowledge",
		"NET/IB: Got completion from peer 10.9.1.3<5> with status=4 opcode=32614 len=32614 vendor err 81 (Send)":                                 "GPUDirect does not work",
		"NET/IB : Got completion from peer 10.2.0.5<3> with error 5, opcode 0":                                                                   "an echo",
		"Call to ibv_modify_qp failed with 61 No data available, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index 3":            "GID index is empty",
		"Call to ibv_modify_qp failed with error Network is unreachable":                                                                         "no route from this GID",
		"Call to ibv_modify_qp failed with 22 Invalid argument":                                                                                  "do not fit together",
		"Call to ibv_modify_qp failed with 110 Connection timed out":                                                                             "no answer to ARP",
		"Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory":                                                                      "could not be registered",
		"NET/IB : mlx5_1:1 Got async event : port error":                                                                                         "a port of the network went down",
		"Cuda failure 802 'system not yet initialized'":                                                                                          "Fabric Manager",
		"Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000":                                                                   "the same GPU",
		"Missing \"iommu=pt\" from kernel command line which can lead to system instablity or hang!":                                             "iommu=pt",
		"something that nobody has seen yet":                                                                                                     "",
	} {
		got, action := ExplainWarning(warning)
		if !strings.Contains(got, want) || want == "" && got != "" || (got == "") != (action == "") {
			t.Errorf("%s: got %q, do %q", warning, got, action)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(log))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Parse(data)
		if err != nil {
			return
		}
		if _, err := json.Marshal(c); err != nil || len(c.Summary()) == 0 {
			t.Error(err)
		}
	})
}

// TestThroughHost: a host that has no direct connection stands out; one that only
// receives directly does not.
func TestThroughHost(t *testing.T) {
	t.Parallel()
	c, _, err := Parse([]byte(`n1:11:11 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
n1:11:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0
n1:11:11 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0
n1:11:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
n2:12:12 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [send] via NET/IB/0
n2:12:12 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [receive] via NET/IB/0/GDRDMA
n3:13:13 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/Socket/0
`))
	if got := c.ThroughHost(); err != nil || len(got) != 1 || got[0] != "n1" || c.NoGDR["n1"] != 1 || c.Of["n1"]["NET/IB"] != 2 {
		t.Errorf("%v, %q, %v, %v", err, got, c.NoGDR, c.Of)
	}
}

// TestNewForms: since 2.30 a warning names its function, devices have a rail and a
// plane, and other things than algorithms are taken; before 2.7 ranks had no bus.
func TestNewForms(t *testing.T) {
	t.Parallel()
	const log = `n1:100:200 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1:0:1/IB [1]mlx5_1:1::2/IB [2]mlx5_2:1:3/RoCE [RO]; OOB eth0:10.77.0.1<0>
n1:100:200 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA(PCI)
n1:100:200 [0] NCCL INFO Channel 01/0 : 0[0] -> 2[2] via P2P/indirect/1[1]
n1:100:200 [0] NCCL INFO CollNet 00/0 : 0 [send] via COLLNET/SHARP/0/GDRDMA
n1:100:200 [0] NCCL INFO Ring 00 : 3 -> 4 [send] via NET/IB/0/GDRDMA
n1:100:200 [0] NCCL INFO AllReduce [Symmetric]: 1024 Bytes -> Kernel AllReduce_AGxLL_R nchannels 8 nthreads 512 nWorks 1
n1:100:200 [0] NCCL INFO AllGather [Copy Engine]: 4096 Bytes -> cudaMemcpyBatchAsync
n1:100:200 [0] transport/net_ib/p2p.cc:391 (ncclIbTest) NCCL WARN NET/IB: Got completion from peer 10.77.0.2<40000> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0
n2:100:200 [1] transport/[net_ib.cc:101](link) NCCL WARN something else
`
	c, problems, err := Parse([]byte(log))
	if err != nil || matchFormat([]byte(log)) == 0 {
		t.Fatal(err)
	}
	if len(c.Devices) != 3 || c.Devices[0].Name != "mlx5_0:1" || c.Devices[1].Link != "IB" || c.Devices[2].Link != "RoCE" {
		t.Errorf("devices %+v", c.Devices)
	}
	for way, want := range map[string]int{"NET/IB/GDRDMA(PCI)": 1, "P2P/indirect": 1, "COLLNET/SHARP/GDRDMA": 1, "NET/IB/GDRDMA": 1} {
		if c.Transports[way] != want {
			t.Errorf("%s: %d times of %v", way, c.Transports[way], c.Transports)
		}
	}
	if len(c.Tuning) != 2 || c.Tuning[1] != (Choice{"AllReduce", 1024, "Symmetric", "AllReduce_AGxLL_R", 1}) || c.Tuning[0].Algorithm != "Copy Engine" {
		t.Errorf("tuning %+v", c.Tuning)
	}
	if len(c.Warnings) != 2 || len(c.Warnings[0].Hosts) != 1 || c.Warnings[0].Hosts[0] != "n1" || !strings.Contains(c.Warnings[0].Meaning, "IBV_WC_RETRY_EXC_ERR") || c.Warnings[1].Hosts[0] != "n2" {
		t.Errorf("warnings %+v, problems %v", c.Warnings, problems)
	}
	if n := matchFormat([]byte("transport/p2p.cc:290 (ncclP2pImportShareableBuffer) NCCL WARN Cuda failure 101 'invalid device ordinal'\n")); n == 0 {
		t.Error("a warning alone is not recognised")
	}
}

// TestNewMeanings: warnings of NCCL 2.27 to 2.30.
func TestNewMeanings(t *testing.T) {
	t.Parallel()
	for warning, want := range map[string]string{
		"NET/IB: Device 1 marked as failed. Initiating recovery? yes (send comm=0x7f, outstandingRecovery=1)":                "a NIC failed",
		"NET/IB: Fatal error. Detected 2 failed devices out of 2 devices on the send communicator":                           "a NIC failed",
		"Detected mixed local Net device counts across ranks (min 3, max 4). Set NCCL_IGNORE_NET_MISMATCH=1 to":              "same number of NICs",
		"CUDA Driver version found is 11040. Minimum requirement is 12020":                                                   "too old",
		"NET/IB : mlx5_0:1 Got non-fatal async event: port error(10)":                                                        "a port of the network went down",
		"MNNVL (cliqueSize 18) is available but not working on this system. Check the IMEX configuration":                    "NVSwitches",
		"NET/IB/GIN: Got completion from peer 10.77.0.2<40000> with status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5": "did not acknowledge",
	} {
		if text, do := ExplainWarning(warning); !strings.Contains(text, want) || do == "" {
			t.Errorf("%q means %q, do %q; want %q", warning, text, do, want)
		}
	}
}

// TestMultiNodeNVLink: lines of public logs of GB200. A rank that uses the NVLink between
// nodes says with how many; a state of its GPU's fabric says nothing of that.
func TestMultiNodeNVLink(t *testing.T) {
	t.Parallel()
	c, _, err := Parse([]byte(`gb200a-04:2101742:2101799 [0] NCCL INFO MNNVL busId 0x801000 fabric UUID 3143b15bc2cd192b.28cc9b5473fb5b93 cliqueId 0x7ffe state 3 healthMask 0xaa
gb200a-04:2101742:2101799 [0] NCCL INFO MNNVL 1 cliqueId 7ffe cliqueSize 8 cliqueRank 2
gb200a-05:2101743:2101803 [1] NCCL INFO MNNVL busId 0x901000 fabric UUID 3143b15bc2cd192b.28cc9b5473fb5b93 cliqueId 0x7ffe state 3 healthMask 0xaa
gb200a-04:2101742:2101799 [0] NCCL INFO Channel 00/0 : 4[0] -> 3[3] via P2P/MNNVL
`))
	if err != nil || len(c.MNNVL) != 1 || c.MNNVL["gb200a-04"] != 8 || c.Transports["P2P/MNNVL"] != 1 {
		t.Errorf("%v, %v, %v", err, c.MNNVL, c.Transports)
	}
}
