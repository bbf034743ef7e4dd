// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/lldp"
)

// How switches speak (lldpd's defaults, which SONiC and Cumulus keep): every 30 s,
// valid for four times that; and at once when a link has come up. A link of 100
// Gb/s and more trains for some seconds before (an assumption: 4 to 12 s).
const (
	interval   = 30 * time.Second
	validFor   = 4 * interval
	trainLeast = 4 * time.Second
	trainMore  = 8 * time.Second
)

// Frame is the LLDP frame that the switch at the far end sends to a node's port,
// or nil: no cable, no link, or no LLDP there.
func (p *Plant) Frame(port Port) []byte {
	end, up := p.Far(port)
	s := p.switches[end.Switch]
	if !up || s == nil || s.IB {
		return nil
	}
	name, kind, description := portName(s, end)
	b := []byte{0x01, 0x80, 0xc2, 0, 0, 0x0e}
	b = append(b, s.MAC[:]...)
	b = append(b, 0x88, 0xcc)
	b = appendTLV(b, 1, append([]byte{4}, s.MAC[:]...)) // chassis: MAC
	b = appendTLV(b, 2, append([]byte{kind}, name...))
	b = appendTLV(b, 3, binary.BigEndian.AppendUint16(nil, uint16(validFor/time.Second)))
	b = appendTLV(b, 5, []byte(s.Host))
	b = appendTLV(b, 6, []byte(describeSwitch(s)))
	b = appendTLV(b, 7, []byte{0, 0x14, 0, 0x14}) // bridge and router, both enabled
	b = appendTLV(b, 4, []byte(description))
	b = appendTLV(b, 127, append([]byte{0x00, 0x12, 0x0f, 4}, 0x24, 0x14)) // IEEE 802.3, maximum frame size: 9236
	b = appendTLV(b, 0, nil)
	return append(b, make([]byte, max(0, 60-len(b)))...)
}

func appendTLV(b []byte, kind int, value []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(kind<<9|len(value)))
	return append(b, value...)
}

// Subtypes of port ids.
const (
	interfaceName = 5
	local         = 7
)

// portName is how a switch system presents a port: SONiC says the alias of NVIDIA's
// platforms as a local id, and its own name, which counts lanes, as description. A
// link of a split port has a letter, or a number of its own, behind.
func portName(s *Switch, end End) (name string, kind byte, description string) {
	n, half := end.Number, func(form string, first int) string {
		if end.Lane == 0 {
			return ""
		}
		return fmt.Sprintf(form, first+end.Lane-1)
	}
	switch strings.ToLower(s.OS) {
	case "sonic":
		return fmt.Sprintf("etp%d", n) + half("%c", 'a'), local, sonicName(s, end)
	case "mlnx-os", "onyx":
		name = fmt.Sprintf("Eth1/%d", n) + half("/%d", 1)
	case "nx-os", "nxos":
		name = fmt.Sprintf("Ethernet1/%d", n) + half("/%d", 1)
	case "eos", "arista":
		name = fmt.Sprintf("Ethernet%d/%d", n, max(end.Lane, 1))
	default:
		name = fmt.Sprintf("swp%d", n) + half("s%d", 0)
	}
	return name, interfaceName, name
}

// sonicName is SONiC's name of a port: four lanes a port up to 100 Gb/s, else
// eight. A link of a split port is named after its first lane.
func sonicName(s *Switch, end End) string {
	lanes := lanesOf(s.Model)
	first := (end.Number - 1) * lanes
	if end.Lane > 1 && s.split > 1 {
		first += (end.Lane - 1) * lanes / s.split
	}
	return fmt.Sprintf("Ethernet%d", first)
}

// lanesOf is how many lanes the ports of a model have.
func lanesOf(model string) int {
	for _, m := range []string{"SN2", "SN37", "SN46"} {
		if strings.HasPrefix(strings.ToUpper(model), m) {
			return 4
		}
	}
	return 8
}

// describeSwitch returns the system description.
func describeSwitch(s *Switch) string {
	model := s.Model
	if model == "" {
		model = "virtual"
	}
	switch strings.ToLower(s.OS) {
	case "sonic":
		return fmt.Sprintf("SONiC Software Version: SONiC.202405.1 - HwSku: Mellanox-%s - Distribution: Debian 12.6 - Kernel: 6.1.0-22-2-amd64", model)
	case "mlnx-os", "onyx":
		return fmt.Sprintf("Mellanox %s,Onyx,SWv3.10.4302", model)
	case "eos", "arista":
		return fmt.Sprintf("Arista Networks EOS version 4.32.2F running on an Arista Networks %s", model)
	}
	return fmt.Sprintf("Cumulus Linux version 5.9.0 running on %s", model)
}

// NIC is a node's network interface and the port of the inventory that it is.
type NIC struct {
	Name, PCI string // as the node's kernel has them
	Port      Port
}

// Neighbours is what a node hears that has listened long enough, in the order of
// its NICs: the switches' frames, read by the agent's own code.
func (p *Plant) Neighbours(nics []NIC) (list []wire.Neighbour) {
	for _, n := range nics {
		if pdu, err := lldp.ParseFrame(p.Frame(n.Port)); err == nil {
			list = append(list, wire.Neighbour{NIC: n.Name, PCI: n.PCI, ChassisID: pdu.ChassisID, PortID: pdu.PortID, SystemName: pdu.SystemName})
		}
	}
	return list
}

// Source is the air around a node's NICs, for lldp.Start: links come up when the
// listening begins, and the switches speak then and at their times.
func (p *Plant) Source(nics []NIC) lldp.Source { return source{p, nics} }

type source struct {
	plant *Plant
	nics  []NIC
}

// Listen implements lldp.Source, with one goroutine: the caller's.
func (s source) Listen(ctx context.Context, names []string, heard func(string, []byte)) error {
	type turn struct {
		at  time.Duration
		nic NIC
	}
	var turns []turn
	for _, n := range s.nics {
		end, ok := s.plant.Far(n.Port)
		if !ok || !slices.Contains(names, n.Name) {
			continue
		}
		up := trainLeast + time.Duration(s.plant.number("training", end)*float64(trainMore))
		turns = append(turns, turn{up, n}, turn{up + s.plant.phase(end, interval), n})
	}
	began := s.plant.clock.Now()
	for len(turns) > 0 {
		slices.SortStableFunc(turns, func(a, b turn) int { return int(a.at - b.at) })
		now := turns[0]
		if s.plant.clock.Sleep(ctx, now.at-s.plant.clock.Now().Sub(began)) != nil {
			return nil
		}
		if frame := s.plant.Frame(now.nic.Port); frame != nil {
			heard(now.nic.Name, frame)
		}
		turns[0].at += interval
	}
	<-ctx.Done()
	return nil
}
