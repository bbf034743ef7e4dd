// SPDX-License-Identifier: Apache-2.0

// Package showgids reads what show_gids prints: the GID table of a node's RDMA
// devices. Source: sbin/show_gids of Mellanox/mlnx-tools, which reads
// /sys/class/infiniband/*/ports/*/gids and gid_attrs.
package showgids

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Name is the kind's name.
const Name = "show_gids"

// Table is the content.
type Table struct {
	GIDs []GID `json:"gids"`
}

// GID is one entry. Its index moves when addresses change, so that an entry is
// found by version and address, never by number.
type GID struct {
	Device  string `json:"device"`
	Port    int    `json:"port"`
	Index   int    `json:"index"`
	GID     string `json:"gid"`
	IPv4    string `json:"ipv4,omitempty"`
	Version string `json:"version,omitempty"` // v1 or v2 of RoCE; InfiniBand has v1 or none
	NetDev  string `json:"netdev,omitempty"`

	line int
}

// Format is what recognises and reads this output.
var Format = tool.Format{
	Name: Name,
	Is: func(data []byte) int {
		switch {
		case header.Match(data):
			return 95
		case footer.Match(data):
			return 80
		}
		return 0
	},
	Parse: func(data []byte) (any, tool.Problems, error) { return Parse(data) },
}

var (
	header = lazyregexp.New(`(?m)^[ \t]*DEV[ \t]+PORT[ \t]+INDEX[ \t]+GID[ \t]`)
	footer = lazyregexp.New(`(?m)^[ \t]*n_gids_found=([0-9]+)[ \t]*\r?$`)
	row    = lazyregexp.New(`^(\S+)\s+([0-9]+)\s+([0-9]+)\s+(\S+:\S*)(?:\s+([0-9]+\.[0-9.]*))?(?:\s+(v[12]))?(?:\s+(\S+))?$`)
	start  = lazyregexp.New(`^\S+\s+[0-9]+\s+[0-9]+(\s|$)`)
)

// Parse reads the table.
func Parse(data []byte) (*Table, tool.Problems, error) {
	t, problems := Table{GIDs: []GID{}}, tool.Problems(nil)
	n, found, at := 0, -1, 0
	for line := range strings.SplitSeq(string(data), "\n") {
		n++
		text := strings.TrimSpace(line)
		if m := footer.FindStringSubmatch(text); m != nil {
			found, _ = strconv.Atoi(m[1])
			at = n
		} else if m := row.FindStringSubmatch(text); m != nil {
			t.GIDs = append(t.GIDs, parseEntry(m, n, &problems))
		} else if start.MatchString(text) {
			problems.Add(tool.Truncated, n, "The line of a GID ends before its end.")
		}
	}
	if len(t.GIDs) == 0 && found < 0 && !header.Match(data) {
		return nil, nil, errors.New("it has no GID")
	}
	switch {
	case found < 0:
		problems.Add(tool.Truncated, 0, "The line n_gids_found, which is the last one, is not there.")
	case found != len(t.GIDs):
		problems.Add(tool.Inconsistent, at, "%d GIDs were found, and %d are here.", found, len(t.GIDs))
	}
	checkDuplicates(t.GIDs, &problems)
	return &t, problems, nil
}

// parseEntry reads one line, whose IPv4 address is the last part of its GID.
func parseEntry(m []string, line int, problems *tool.Problems) GID {
	port, _ := strconv.Atoi(m[2])
	index, _ := strconv.Atoi(m[3])
	g := GID{Device: m[1], Port: port, Index: index, GID: m[4], IPv4: m[5], Version: m[6], NetDev: m[7], line: line}
	a, err := netip.ParseAddr(g.GID)
	v4, err4 := netip.ParseAddr(g.IPv4)
	if err == nil && err4 == nil && a.Is4In6() && a.Unmap() != v4 {
		problems.Add(tool.Inconsistent, line, "GID %s is of address %s, and the line says %s.", g.GID, a.Unmap(), g.IPv4)
	}
	if g.IPv4 != "" && err4 != nil {
		problems.Add(tool.Inconsistent, line, "%q is no IPv4 address.", g.IPv4)
	}
	return g
}

func checkDuplicates(gids []GID, problems *tool.Problems) {
	at := map[string]int{}
	for _, g := range gids {
		key := fmt.Sprintf("%s/%d/%d", g.Device, g.Port, g.Index)
		if before, again := at[key]; again {
			problems.Add(tool.Inconsistent, g.line, "Index %d of %s port %d is here and on line %d.", g.Index, g.Device, g.Port, before)
		}
		at[key] = g.line
	}
}

// Find returns the entry of a version ("v2") and an address of a device's port.
func (t *Table) Find(device string, port int, version, address string) (GID, bool) {
	for _, g := range t.GIDs {
		if g.Device == device && g.Port == port && g.Version == version && g.IPv4 == address {
			return g, true
		}
	}
	return GID{}, false
}

// Summary says how many GIDs there are, and names ports without a RoCE v2 GID of
// an IPv4 address.
func (t *Table) Summary() []string {
	lines := []string{fmt.Sprintf("%d GIDs", len(t.GIDs))}
	var ports []string
	routable := map[string]bool{}
	for _, g := range t.GIDs {
		p := fmt.Sprintf("%s port %d", g.Device, g.Port)
		if _, known := routable[p]; !known {
			ports, routable[p] = append(ports, p), false
		}
		routable[p] = routable[p] || g.Version == "v2" && g.IPv4 != ""
	}
	for _, p := range ports {
		if !routable[p] {
			lines = append(lines, p+" has no v2 GID of an IPv4 address")
		}
	}
	return lines
}
