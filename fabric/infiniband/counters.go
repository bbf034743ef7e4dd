// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// countCommands read the counters of all switches: what went, and every error however
// few; an empty file has no thresholds (ibqueryerrors(8), --threshold-file).
var countCommands = [][]string{
	{"ibqueryerrors", "--counters", "--switch"},
	{"ibqueryerrors", "--threshold-file", "/dev/null", "--switch"},
}

// SwitchCounters implements fabric.Counting, by ibqueryerrors on the controller of the
// subnet manager.
func (b *InfiniBand) SwitchCounters(ctx context.Context, f *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
	host := b.hostOf(f)
	if host == nil {
		return nil, errkind.New(errkind.Unsupported, "fabric %s: no controller runs its subnet manager", f.Name)
	}
	s := &Subnet{Inv: b.inv, Fabric: f, Host: host}
	found, err := s.Sweep(ctx)
	if err != nil {
		return nil, err
	}
	ports := namePorts(cabling.CompareSweep(b.inv, f, nil, found).Switches, found)
	all := map[fabric.SwitchPort]fabric.SwitchCounters{}
	for _, name := range ports {
		all[name] = fabric.SwitchCounters{}
	}
	for _, argv := range countCommands {
		out, err := runDiagnostic(ctx, host, argv...)
		if err != nil && !hasErrorsOnly(out) {
			return nil, fmt.Errorf("fabric %s: %w", f.Name, err)
		}
		addCounters(all, ports, string(out))
	}
	return all, nil
}

// hasErrorsOnly reports whether ibqueryerrors ended with a status since a port has an
// error: it printed its summary, and complains of nothing (ibqueryerrors.c of rdma-core 44).
func hasErrorsOnly(out []byte) bool {
	text := string(out)
	return strings.Contains(text, "## Summary:") && !slices.ContainsFunc(complaints, func(c string) bool { return strings.Contains(text, c) })
}

// hostOf is where the subnet manager of a fabric runs; nil: nowhere.
func (b *InfiniBand) hostOf(f *inventory.Fabric) Host {
	if b.host == nil {
		return nil
	}
	return b.host(f.Name)
}

// guidPort is a port of a switch as the diagnostic programs name it.
type guidPort struct {
	guid   addr.GUID
	number int
}

// namePorts says which port of the site each end of a link between switches is.
func namePorts(switches map[addr.GUID]*inventory.Switch, t *ibnetdiscover.Topology) map[guidPort]fabric.SwitchPort {
	names := map[guidPort]fabric.SwitchPort{}
	for i := range t.Links {
		l := &t.Links[i]
		for _, e := range []ibnetdiscover.End{l.From, l.To} {
			if switches[l.From.GUID] != nil && switches[l.To.GUID] != nil {
				names[guidPort{e.GUID, e.Port}] = fmt.Sprintf("%s/%d", switches[e.GUID].Name, e.Port)
			}
		}
	}
	return names
}

var (
	countedPort = lazyregexp.New(`(?m)^[ \t]*GUID (0x[0-9a-fA-F]+) port ([0-9]+):(.*)$`)
	counted     = lazyregexp.New(`\[([A-Za-z0-9]+) == ([0-9]+)`)
)

// errorCounters are those that say that what arrived was damaged. PortXmitDiscards and
// PortXmitWait come of congestion, PortRcvSwitchRelayErrors of multicast.
var errorCounters = map[string]bool{"SymbolErrorCounter": true, "PortRcvErrors": true, "LocalLinkIntegrityErrors": true, "LinkErrorRecoveryCounter": true, "LinkDownedCounter": true, "ExcessiveBufferOverrunErrors": true}

// addCounters adds what ibqueryerrors printed of ports that are known, such as
//
//	GUID 0x2c903006e29b0 port 5: [SymbolErrorCounter == 65535] [PortXmitPkts == 198 (198.000)]
func addCounters(all map[fabric.SwitchPort]fabric.SwitchCounters, names map[guidPort]fabric.SwitchPort, text string) {
	for _, m := range countedPort.FindAllStringSubmatch(text, -1) {
		guid, err := strconv.ParseUint(strings.TrimPrefix(m[1], "0x"), 16, 64)
		number, err2 := strconv.Atoi(m[2])
		name, known := names[guidPort{addr.GUID(guid), number}]
		if err != nil || err2 != nil || !known {
			continue
		}
		c := all[name]
		for _, x := range counted.FindAllStringSubmatch(m[3], -1) {
			n, err := strconv.ParseUint(x[2], 10, 64)
			switch {
			case err != nil:
			case x[1] == "PortXmitPkts":
				c.Sent += n
			case x[1] == "PortRcvPkts":
				c.Received += n
			case errorCounters[x[1]]:
				c.Errors += n
				if x[1] == "LinkDownedCounter" {
					c.Downed = n
				}
			}
		}
		all[name] = c
	}
}
