// SPDX-License-Identifier: Apache-2.0

package nccllog

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// bareVersion is the line that NCCL_DEBUG=VERSION prints, without a head.
var bareVersion = lazyregexp.New(`^\s*(?:NCCL|RCCL) version\s*:?\s+(\d[\w.+-]*)`)

// pattern is one kind of line, and what is taken from it.
type pattern struct {
	has  string // a part of every such line, which is looked for first
	at   *lazyregexp.Regexp
	read func(r *reader, host string, m []string)
}

// patterns are tried in this order; the first one that fits takes the line.
var patterns = []pattern{
	{"CL version", lazyregexp.New(`^(?:NCCL|RCCL) version\s*:?\s+(\d[\w.+-]*)`), func(r *reader, _ string, m []string) { r.c.Version = m[1] }},
	{" set ", lazyregexp.New(`^(NCCL_\w+) set (?:by environment )?to (.+?)\.?$`), func(r *reader, _ string, m []string) { r.c.Settings[m[1]] = m[2] }},
	{"Using", lazyregexp.New(`^NET/IB ?: Using (.*)$`), func(r *reader, host string, m []string) { r.devicesOf(host, m[1]) }},
	{"Using", lazyregexp.New(`^NET/Socket ?: Using (.*)$`), func(r *reader, host string, m []string) { r.socketsOf(host, m[1]) }},
	{"", lazyregexp.New(`^(?:Using network|Assigned NET plugin) (\S.*?)(?: to comm)?$`), func(r *reader, _ string, m []string) { r.networks[m[1]] = true }},
	{"GPU Direct RDMA", lazyregexp.New(`GPU Direct RDMA (Enabled|Disabled)|GPU Direct RDMA \(\w+\) (enabled|disabled)`), func(r *reader, host string, m []string) {
		if strings.EqualFold(m[1]+m[2], "enabled") {
			r.c.GDR.Enabled++
		} else {
			r.c.GDR.Disabled++
			r.c.NoGDR[host]++
		}
	}},
	{" -> ", lazyregexp.New(`^(?:Channel|Ring) \d+(?:/\d+)? : (\d+)(?:\[\w+\])? -> (\d+)(?:\[\w+\])? (?:\[(send|receive)\] )?(?:\[\w+\] )?via ([A-Z0-9][\w/()+. -]*?)(?:/\d+\[\w+\])?(?: comm \S+ nRanks \d+)?$`), func(r *reader, host string, m []string) { r.connect(host, transportOf(m[4])) }},
	{"COLLNET/", lazyregexp.New(`^CollNet \d+(?:/\d+)? : \d+ \[(?:send|receive)\] via (COLLNET/[\w/()+.-]*)`), func(r *reader, host string, m []string) { r.connect(host, transportOf(m[1])) }},
	{"- Init ", lazyregexp.New(`\bcomm \S+ rank (\d+) n[rR]anks (\d+) .*?(?:commId (\S+) )?- Init (START|COMPLETE)`), (*reader).init},
	{"coll channels", lazyregexp.New(`^(\d+) coll channels, (?:(\d+) collnet channels, )?(?:(\d+) nvls channels, )?(\d+) p2p channels`), func(r *reader, _ string, m []string) {
		r.c.Channels = &Channels{Collective: parseNumber(m[1]), CollNet: parseNumber(m[2]), NVLS: parseNumber(m[3]), P2P: parseNumber(m[4])}
	}},
	{"MNNVL 1 ", lazyregexp.New(`^MNNVL 1 cliqueId \w+ cliqueSize (\d+) cliqueRank \d+`), func(r *reader, host string, m []string) {
		if r.c.MNNVL == nil {
			r.c.MNNVL = map[string]int{}
		}
		r.c.MNNVL[host] = max(r.c.MNNVL[host], parseNumber(m[1]))
	}},
	{"NVLS multicast", lazyregexp.New(`^NVLS multicast support is available`), func(r *reader, _ string, _ []string) { r.c.NVLS = true }},
	{" Bytes -> ", lazyregexp.New(`^(\w+): (\d+) Bytes -> [Aa]lgo (\w+) [Pp]roto (\w+)`), (*reader).choice},
	{" Bytes -> ", lazyregexp.New(`^(\w+) \[(Symmetric)\]: (\d+) Bytes -> Kernel (\w+)`), (*reader).kernel},
	{" Bytes -> ", lazyregexp.New(`^(\w+) \[(Copy Engine|Hierarchical CE)\]: (\d+) Bytes -> (\S.*)$`), (*reader).kernel},
}

// device is one of the list of NET/IB: "[0]mlx5_0:1/RoCE", and since 2.21, of
// several that are used as one, "[0]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}". Behind
// the port newer versions may have the rail and the plane: "mlx5_0:1:0:1/IB".
var device = lazyregexp.New(`([A-Za-z][\w.-]*:\d+)(?::\d*){0,2}/(IB|RoCE|\w+)`)

func (r *reader) devicesOf(host, list string) {
	list, _, _ = strings.Cut(list, "; OOB")
	for _, m := range device.FindAllStringSubmatch(list, -1) {
		r.devices[Device{Host: host, Network: "IB", Name: m[1], Link: m[2]}] = true
	}
}

// socket is one of the list of NET/Socket: "[0]eth0:10.0.0.1<0>".
var socket = lazyregexp.New(`\[\d+\]([^\s<]+)<`)

func (r *reader) socketsOf(host, list string) {
	for _, m := range socket.FindAllStringSubmatch(list, -1) {
		r.devices[Device{Host: host, Network: "Socket", Name: m[1]}] = true
	}
}

// numbered is the index of a device in the name of a transport.
var numbered = lazyregexp.New(`/\d+(?:\(\d+\))?`)

// transportOf returns the way of a connection without the number of its device:
// "NET/IB/0(8)/GDRDMA/Shared" is "NET/IB/GDRDMA".
func transportOf(via string) string {
	return strings.TrimSuffix(numbered.ReplaceAllString(via, ""), "/Shared")
}

// connect counts a connection.
func (r *reader) connect(host, way string) {
	r.c.Transports[way]++
	if r.c.Of[host] == nil {
		r.c.Of[host] = map[string]int{}
	}
	r.c.Of[host][way]++
}

// init notes that a rank began to connect, or is connected.
func (r *reader) init(host string, m []string) {
	r.c.Ranks = max(r.c.Ranks, parseNumber(m[2]))
	who := host + " " + m[1] + " " + m[3]
	if m[4] == "COMPLETE" {
		r.ready[who] = true
	}
	r.begun[who] = true
}

// The names behind the numbers that older versions print: NCCL_ALGO_* and
// NCCL_PROTO_* of its nccl_common.h.
var (
	algorithms = []string{"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}
	protocols  = []string{"LL", "LL128", "Simple"}
)

// mostChoices bounds what is kept of a log that names every call.
const mostChoices = 10000

func (r *reader) choice(_ string, m []string) {
	bytes, err := strconv.ParseInt(m[2], 10, 64)
	c := Choice{Collective: m[1], Bytes: bytes, Algorithm: nameOf(algorithms, m[3]), Protocol: nameOf(protocols, m[4])}
	if err == nil && (r.choices[c] > 0 || len(r.choices) < mostChoices) {
		r.choices[c]++
	}
}

// kernel notes what was taken instead of an algorithm: a kernel over memory that
// all ranks map alike, or the copy engines.
func (r *reader) kernel(host string, m []string) {
	r.choice(host, []string{m[0], m[1], m[3], m[2], m[4]})
}

// nameOf returns a name for a number, and for a name its usual spelling.
func nameOf(names []string, s string) string {
	if i, err := strconv.Atoi(s); err == nil && i >= 0 && i < len(names) {
		return names[i]
	}
	for _, n := range names {
		if strings.EqualFold(strings.ReplaceAll(s, "_", ""), n) {
			return n
		}
	}
	return s
}

// parseNumber returns a number of a few digits; 0 when it is none.
func parseNumber(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
