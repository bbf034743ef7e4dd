// SPDX-License-Identifier: Apache-2.0

// Package nodelist is the handover kind "json": the nodes in service with their parts,
// addresses and places, and the switches above them, as one JSON document. Its form is
// schema.json, and other kinds of export take what they list from it. It holds no
// secret.
package nodelist

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/addresses"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/export"
	"github.com/ironrail/ironrail/provision/handover/place"
)

const (
	// Name is the kind's name in the language.
	Name = "json"
	// FileName is the file that it writes.
	FileName = "nodes.json"
	// format is that of the document: fields are added, and none changes its meaning.
	format = 1
)

// Schema is the JSON Schema (2020-12) of the document.
//
//go:embed schema.json
var Schema []byte

// List is the document.
type List struct {
	Format   int     `json:"format"`
	Site     string  `json:"site"`
	Handover string  `json:"handover"`
	Fabric   string  `json:"fabric,omitempty"` // whose cables the switches are of; "": racks stand for leaves
	Nodes    []Node  `json:"nodes"`            // by name
	Tree     *Switch `json:"tree,omitempty"`   // absent without nodes
}

// Node is one node in service.
type Node struct {
	Name     string `json:"name"`
	Address  string `json:"address"`
	Address6 string `json:"address6,omitempty"`
	Role     string `json:"role,omitempty"`
	Rack     string `json:"rack,omitempty"`
	Unit     int    `json:"unit,omitempty"` // of the rack, the lowest
	SU       int    `json:"scalable_unit,omitempty"`
	Leaf     string `json:"leaf,omitempty"`
	Pod      string `json:"pod,omitempty"` // above the leaf, in a fabric of three levels
	Domain   string `json:"nvlink_domain,omitempty"`
	Serial   string `json:"serial,omitempty"`
	UUID     string `json:"uuid,omitempty"` // SMBIOS
	BMC      string `json:"bmc_address,omitempty"`
	CPU      *CPU   `json:"cpu,omitempty"`          // as inspected
	Memory   int64  `json:"memory_bytes,omitempty"` // usable, as inspected
	GPUs     []GPU  `json:"gpus,omitempty"`
	Rails    []Rail `json:"rails,omitempty"`
}

// CPU counts the processors of a node.
type CPU struct {
	Sockets int `json:"sockets"`
	Cores   int `json:"cores"`   // of all sockets
	Threads int `json:"threads"` // of all cores
}

// GPU is a set of equal GPUs of a node.
type GPU struct {
	Vendor       string `json:"vendor"`
	Model        string `json:"model"`
	Count        int    `json:"count"`
	Memory       int64  `json:"memory_bytes,omitempty"` // of each
	Interconnect string `json:"interconnect,omitempty"`
}

// Rail is one port of a node on a fabric.
type Rail struct {
	Fabric  string `json:"fabric"`
	Rail    int    `json:"rail"`
	Port    string `json:"port"` // NIC and number, as cables of the site write it
	PCI     string `json:"pci,omitempty"`
	Address string `json:"address,omitempty"` // with the length of its network
	Switch  string `json:"switch,omitempty"`  // that the cable goes to, with its port
}

// Switch is a switch of the tree: see package place.
type Switch struct {
	Name  string    `json:"name"`
	Nodes []string  `json:"nodes,omitempty"` // directly below
	Below []*Switch `json:"below,omitempty"`
}

// New returns the kind. links are the addresses that were allocated to links.
func New(dir string, links []*roce.Links) *export.Kind {
	return export.New(dir, func(t handover.Target) ([]handover.File, error) {
		content, err := Encode(Of(t, links))
		return []handover.File{{Name: FileName, Content: content}}, err
	}, Describe(links))
}

// Describe writes what a list follows from, for kinds whose files follow from it.
func Describe(links []*roce.Links) export.Describe {
	return func(w io.Writer, t handover.Target) {
		l := Of(t, links)
		fmt.Fprintln(w, l.Format, l.Site, l.Handover, l.Fabric)
		for i := range l.Nodes {
			n := &l.Nodes[i]
			fmt.Fprintf(w, "%q\n", [...]string{n.Name, n.Address, n.Address6, n.Role, n.Rack, n.Leaf, n.Pod, n.Domain, n.Serial, n.UUID, n.BMC, strconv.Itoa(n.Unit), strconv.Itoa(n.SU)})
			for _, g := range n.GPUs {
				fmt.Fprintln(w, g)
			}
			for _, r := range n.Rails {
				_, _ = io.WriteString(w, r.Fabric+" "+strconv.Itoa(r.Rail)+" "+r.Port+" "+r.PCI+" "+r.Address+" "+r.Switch+"\n")
			}
		}
	}
}

// Encode writes a document for people and programs: indented, without escapes of HTML,
// with a line feed.
func Encode(document any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(document)
	return b.Bytes(), err
}

// Of lists the members of a handover that are in service.
func Of(t handover.Target, links []*roce.Links) List {
	members := export.InService(t)
	nodes := make([]*inventory.Node, len(members))
	for i, m := range members {
		nodes[i] = m.Node
	}
	tree := place.Of(t.Inventory, nodes)
	l := List{Format: format, Site: t.Site, Handover: t.Name, Nodes: make([]Node, 0, len(nodes)), Tree: switchOf(tree.Root)}
	if tree.Fabric != nil {
		l.Fabric = tree.Fabric.Name
	}
	ports := portsOf(t.Inventory, links)
	for _, m := range members {
		n := nodeOf(m)
		n.Leaf, n.Pod = tree.Leaf(m.Node), tree.Above(m.Node)
		n.Rails = ports.railsOf(m.Node)
		l.Nodes = append(l.Nodes, n)
	}
	return l
}

// switchOf returns a switch with what is below it.
func switchOf(s *place.Switch) *Switch {
	if s == nil {
		return nil
	}
	out := &Switch{Name: s.Name}
	for _, n := range s.Nodes {
		out.Nodes = append(out.Nodes, n.Name)
	}
	for _, b := range s.Below {
		out.Below = append(out.Below, switchOf(b))
	}
	return out
}

// nodeOf is a node without its place in fabrics.
func nodeOf(m handover.Member) Node {
	n := m.Node
	out := Node{Name: n.Name, Unit: n.Unit, SU: n.ScalableUnit, Domain: n.Domain, Serial: n.Serial, UUID: n.UUID, Memory: m.Hardware.Memory.Usable}
	if n.Address.IsValid() {
		out.Address = n.Address.String()
	}
	if n.Address6.IsValid() {
		out.Address6 = n.Address6.String()
	}
	if n.BMC.Address.IsValid() {
		out.BMC = n.BMC.Address.String()
	}
	if n.Role != nil {
		out.Role = n.Role.Name
	}
	if n.Rack != nil {
		out.Rack = n.Rack.Name
	}
	if c := m.Hardware.CPU; c.Cores > 0 {
		out.CPU = &CPU{c.Sockets, c.Cores, c.Threads}
	}
	if n.Hardware != nil {
		for _, g := range n.Hardware.GPUs {
			out.GPUs = append(out.GPUs, GPU{g.Vendor, g.Model, max(g.Count, 1), int64(g.Memory), g.Interconnect})
		}
	}
	return out
}

// ports are what is known of ports on fabrics: by their names.
type ports struct {
	address, far map[string]string
	lanes        map[string]int // the highest lane that is cabled, by the name of the whole port
}

func portsOf(inv *inventory.Inventory, links []*roce.Links) ports {
	p := ports{map[string]string{}, map[string]string{}, map[string]int{}}
	if inv == nil {
		return p
	}
	for _, e := range addresses.List(inv, links) {
		if e.Kind == addresses.Rail {
			p.address[e.Port] = e.Address.String()
		}
	}
	for _, c := range inv.Cables {
		at, far := c.NodeEnd()
		if at.Node == nil || at.NIC == nil || far.Switch == nil {
			continue
		}
		whole := inventory.CableEnd{Node: at.Node, NIC: at.NIC, Port: at.Port}
		name := whole.String()
		if at.Lane > 0 {
			p.lanes[name] = max(p.lanes[name], at.Lane)
			whole.Lane = at.Lane
			name = whole.String()
		}
		p.far[name] = far.String()
		if a, known := p.address[at.String()]; known { // as the site writes the port
			p.address[name] = a
		}
	}
	return p
}

// railsOf lists the ports of a node on fabrics, in the order of its hardware. A port
// that is several links has one entry for each that is cabled.
func (p ports) railsOf(n *inventory.Node) (list []Rail) {
	if n.Hardware == nil {
		return nil
	}
	for i := range n.Hardware.NICs {
		nic := &n.Hardware.NICs[i]
		if nic.Fabric == nil {
			continue
		}
		for port, at := range nic.Ports {
			end := inventory.CableEnd{Node: n, NIC: nic, Port: port}
			add := func(name string) {
				list = append(list, Rail{Fabric: nic.Fabric.Name, Rail: at.Rail, Port: name[len(n.Name)+1:], PCI: at.PCI, Address: p.address[name], Switch: p.far[name]})
			}
			lanes := p.lanes[end.String()]
			if lanes == 0 {
				add(end.String())
			}
			for end.Lane = 1; end.Lane <= lanes; end.Lane++ {
				if name := end.String(); p.far[name] != "" {
					add(name)
				}
			}
		}
	}
	return list
}
