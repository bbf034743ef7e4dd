// SPDX-License-Identifier: Apache-2.0

package subnet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/onnode"
)

// plug is the far end of a switch port.
type plug struct {
	id, name string
	guid     addr.GUID // of the port; 0: of a switch
	port     int
	lid      int
	width    string
}

// discover prints as infiniband-diags' ibnetdiscover does (ibnetdiscover.c of
// rdma-core 44): switches first, each cable twice.
func (m *Manager) discover() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#\n# Topology file: generated on %s\n#\n# Initiated from node %016x port %016x\n", m.clock.Now().UTC().Format("Mon Jan _2 15:04:05 2006"), uint64(managerGUID), uint64(managerGUID+1))
	ports, plugs := m.ports(), m.plugs()
	for _, s := range m.wiring.Switches() {
		g := GUIDOf(s.Name)
		fmt.Fprintf(&b, "\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x%x\nswitchguid=0x%x(%x)\nSwitch\t%d %q\t\t# \"%s\" enhanced port 0 lid %d lmc 0\n",
			uint64(g), uint64(g), uint64(g), s.Ports, "S-"+formatGUID(g), switchName(s.Name), m.lids[g])
		for n := 1; n <= s.Ports; n++ {
			p, ok := plugs[s.Name][n]
			switch {
			case !ok:
			case p.guid != 0:
				fmt.Fprintf(&b, "[%d]\t%q[%d](%x) \t\t# \"%s\" lid %d %s\n", n, p.id, p.port, uint64(p.guid), p.name, p.lid, p.width)
			default:
				fmt.Fprintf(&b, "[%d]\t%q[%d]\t\t# \"%s\" lid %d %s\n", n, p.id, p.port, p.name, p.lid, p.width)
			}
		}
	}
	for _, p := range ports {
		g := GUIDOf(p.Switch)
		fmt.Fprintf(&b, "\nvendid=0x2c9\ndevid=0x1021\nsysimgguid=0x%x\ncaguid=0x%x\nCa\t1 %q\t\t# \"%s\"\n[1](%x) \t%q[%d]\t\t# lid %d lmc 0 \"%s\" lid %d %s\n",
			uint64(p.HCA), uint64(p.HCA), "H-"+formatGUID(p.HCA), p.Name, uint64(p.GUID), "S-"+formatGUID(g), p.Number, m.lids[p.GUID], switchName(p.Switch), m.lids[g], formatWidth(p.Lanes, p.Speed))
	}
	return b.String()
}

// plugs are the far ends of all switch ports with a link.
func (m *Manager) plugs() map[string]map[int]plug {
	all := map[string]map[int]plug{}
	put := func(name string, port int, p plug) {
		if all[name] == nil {
			all[name] = map[int]plug{}
		}
		all[name][port] = p
	}
	for _, p := range m.ports() {
		put(p.Switch, p.Number, plug{"H-" + formatGUID(p.HCA), p.Name, p.GUID, 1, m.lids[p.GUID], formatWidth(p.Lanes, p.Speed)})
	}
	for _, t := range m.wiring.Trunks() {
		w := formatWidth(t.Lanes, t.Speed)
		a, z := GUIDOf(t.From), GUIDOf(t.To)
		put(t.From, t.FromPort, plug{"S-" + formatGUID(z), switchName(t.To), 0, t.ToPort, m.lids[z], w})
		put(t.To, t.ToPort, plug{"S-" + formatGUID(a), switchName(t.From), 0, t.FromPort, m.lids[a], w})
	}
	return all
}

func formatGUID(g addr.GUID) string { return fmt.Sprintf("%016x", uint64(g)) }

func formatWidth(lanes int, speed string) string { return fmt.Sprintf("%dx%s", lanes, speed) }

// switchName is what a managed switch calls itself.
func switchName(name string) string {
	return "MF0;" + strings.ReplaceAll(name, "/", "-") + ":MQM9700/U1"
}

// query is `smpquery -L pkeys LID [PORT]`.
func (m *Manager) query(args []string) onnode.Output {
	failed := onnode.Output{Exit: 255, Stderr: []byte("smpquery: iberror: failed: operation pkeys: query failed\n")}
	i := slices.Index(args, "pkeys")
	if i < 0 || i+1 >= len(args) || m.conf == nil && !m.ended {
		return failed
	}
	lid, err := strconv.Atoi(args[i+1])
	if err != nil || lid == 0 {
		return failed
	}
	for g, l := range m.lids {
		keys, ok := m.tables[g]
		if l != lid || !ok {
			continue
		}
		var b strings.Builder
		const capacity, row = 128, 8
		for at := 0; at < capacity; at += row {
			fmt.Fprintf(&b, "%4d:", at)
			for k := at; k < at+row; k++ {
				key := uint16(0)
				if k < len(keys) {
					key = keys[k]
				}
				fmt.Fprintf(&b, " 0x%04x", key)
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%d pkeys capacity for this port\n", capacity)
		return onnode.Output{Stdout: []byte(b.String())}
	}
	return failed
}

// stateNames are those of sminfo, by the number of the state.
var stateNames = map[int]string{standingBy: "SMINFO_STANDBY", master: "SMINFO_MASTER"}

// info is sminfo: of the fabric's master, of this controller's own (-D 0), or of the
// one at a LID.
func (m *Manager) info(args []string) onnode.Output {
	own := slices.Equal(args, []string{"-D", "0"})
	for _, sm := range m.managers() {
		lid := m.lids[sm.port]
		switch {
		case own && sm.port != managerGUID+1, len(args) == 0 && sm.state != master, len(args) == 1 && args[0] != strconv.Itoa(lid):
			continue
		case own:
			lid = 0
		}
		return onnode.Output{Stdout: fmt.Appendf(nil, "sminfo: sm lid %d sm guid 0x%x, activity count 17 priority %d state %d %s\n", lid, uint64(sm.port), sm.priority, sm.state, stateNames[sm.state])}
	}
	return onnode.Output{Exit: 255, Stderr: []byte("sminfo: iberror: failed: query\n")}
}

// records is `saquery SMIR` as infiniband-diags 44 prints it.
func (m *Manager) records(args []string) onnode.Output {
	list := m.managers()
	if len(list) == 0 || !slices.Equal(args, []string{"SMIR"}) {
		return onnode.Output{Exit: 255, Stderr: []byte("ibpanic: [1] main: Failed to bind to the SA: Success\n")}
	}
	var b []byte
	for _, sm := range list {
		b = fmt.Appendf(b, "SMInfoRecord dump:\n\t\tRID\n\t\tLID...................%d\n\t\tSMInfo dump:\n\t\tGUID..................0x%016x\n\t\tSM_Key................0x0000000000000000\n\t\tActCount..............17\n\t\tPriority..............%d\n\t\tSMState...............%d\n",
			m.lids[sm.port], uint64(sm.port), sm.priority, sm.state)
	}
	return onnode.Output{Stdout: b}
}
