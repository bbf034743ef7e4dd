// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// partKind is what a part of a suspect is.
type partKind string

// part is the part of a suspect, taken apart: what it is, and which one. "GPU 3 at
// 0000:5d:00.0" is GPU and 3.
type part struct {
	kind partKind
	id   string // number, port, serial or name; empty: the text names none
}

// partForms are how findings name parts, in the order in which they are tried. The
// groups of a pattern are ids; the first that is not empty counts.
var partForms = []struct {
	kind partKind
	form *lazyregexp.Regexp
}{
	{"boot NIC", lazyregexp.New(`^boot NIC\b`)},
	{"GPU", lazyregexp.New(`^GPUs? (\d+)\b|^GPUs? at (\S+)|^GPUs?$`)},
	{"rail", lazyregexp.New(`^rail (\d+)\b`)},
	{"NIC", lazyregexp.New(`^nic (\S+/\d+)|^NIC at (\S+)|^NIC\b`)},
	{"port", lazyregexp.New(`^([\w.-]+/\d+)(?: \(.*\))?$`)},
	{"DIMM", lazyregexp.New(`^DIMM(?: (\S.*))?$|^memory(?: of NUMA node (\d+))?$`)},
	{"disk", lazyregexp.New(`^(?:NVMe )?disk\b(.*)`)},
	{"power supply", lazyregexp.New(`^(?:power )?supply (.+)$`)},
	{"fan", lazyregexp.New(`^fan (.+)$`)},
	{"driver", lazyregexp.New(`^driver\b`)},
	{"BMC", lazyregexp.New(`^BMC$`)},
	{"CPU", lazyregexp.New(`^CPU(?: of NUMA node (\d+)| core (\d+))?$`)},
	{"identity", lazyregexp.New(`^identity$`)},
	{"ramdisk", lazyregexp.New(`^ramdisk$`)},
	{"NVLink", lazyregexp.New(`^NVLink$`)},
	{"IMEX", lazyregexp.New(`^IMEX$`)},
	{"repository", lazyregexp.New(`^repository$`)},
}

// parsePart takes the part of a suspect apart. A text of no known form is its own
// kind, so that it equals nothing that is expected.
func parsePart(text string) part {
	for _, f := range partForms {
		m := f.form.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		p := part{kind: f.kind}
		for _, id := range m[1:] {
			if p.id == "" {
				p.id = strings.TrimSpace(id)
			}
		}
		return p
	}
	return part{kind: partKind(text)}
}

// suspect is one subject and part that a fault may lead to.
type suspect struct {
	subject subject.ID
	kind    partKind // empty: any part of the subject
	// is compares the id of a part; nil: the kind is enough, since the evidence cannot
	// say which one.
	is   func(id string) bool
	says string // the id for a person
}

// matches reports whether a finding's suspect is this one.
func (s suspect) matches(got stage.Suspect) bool {
	if got.Subject != s.subject {
		return false
	}
	if s.kind == "" {
		return true
	}
	p := parsePart(got.Part)
	return p.kind == s.kind && (s.is == nil || s.is(p.id))
}

func (s suspect) String() string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", s.subject.Name, s.kind, s.says)), " ")
}

// expectation is what a planted fault leads to: at least one of want is suspected.
// Beside is what the evidence cannot tell apart from it, which may be suspected too.
type expectation struct {
	want, beside []suspect
	anywhere     func(stage.Suspect) bool // a further form of want, of subjects that the site does not name
	says         string                   // the suspect of anywhere, for a person
}

func (e expectation) String() string {
	var names []string
	if e.says != "" {
		names = append(names, e.says)
	}
	for _, s := range e.want {
		if name := s.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// matchesAny reports whether a finding names the planted part.
func (e expectation) matchesAny(findings []stage.Finding) bool {
	return slices.ContainsFunc(findings, func(f stage.Finding) bool { return slices.ContainsFunc(f.Suspects, e.matches) })
}

func (e expectation) matches(got stage.Suspect) bool {
	return slices.ContainsFunc(e.want, func(s suspect) bool { return s.matches(got) }) || e.anywhere != nil && e.anywhere(got)
}

// ExtraSuspect is something that was suspected and is no planted fault's.
type ExtraSuspect struct {
	Subject string `json:"subject"`
	Part    string `json:"part,omitempty"`
	Cause   string `json:"cause"`
}

// listExtraSuspects lists the suspects that no expectation has, each once.
func listExtraSuspects(findings []stage.Finding, all []expectation) (list []ExtraSuspect) {
	for _, f := range findings {
		for _, s := range f.Suspects {
			expected := slices.ContainsFunc(all, func(e expectation) bool {
				return e.matches(s) || slices.ContainsFunc(e.beside, func(b suspect) bool { return b.matches(s) })
			})
			if b := (ExtraSuspect{Subject: s.Subject.Name, Part: s.Part, Cause: f.Cause}); !expected && !slices.Contains(list, b) {
				list = append(list, b)
			}
		}
	}
	return list
}

// expect returns what a fault leads to. Every kind has a case; see fault.Rows for how
// small the evidence lets the set of suspects be.
func expect(f fault.Fault, inv *inventory.Inventory, hw virtual.FaultyPart) expectation {
	of := func(kind partKind) suspect { return suspect{subject: subject.OfNode(f.Node), kind: kind} }
	only := func(list ...suspect) expectation { return expectation{want: list} }
	switch f.Kind {
	case fault.BMCDead, fault.BMCLocked, fault.BMCWrongPassword, fault.BMCWriteLost:
		return only(of("BMC"))
	case fault.BMCSwapped:
		other := suspect{subject: subject.OfNode(f.With), kind: "BMC"}
		return only(of("BMC"), other)
	case fault.DHCPLoss, fault.HTTPStall, fault.UntaggedPort:
		return only(of("boot NIC"))
	case fault.WrongSerial:
		return only(of("identity"))
	case fault.MissingDIMM, fault.DIMMErrors:
		return only(of("DIMM"))
	case fault.DiskWriteError:
		return only(named(of("disk"), "with serial "+hw.DiskSerial, func(id string) bool { return hasWord(id, hw.DiskSerial) }))
	case fault.KernelHang:
		return only(of("ramdisk"))
	case fault.DriverMismatch:
		return only(of("driver"))
	case fault.IMEXConfig:
		return only(of("IMEX"))
	case fault.MissingGPU:
		return only(gpu(of("GPU"), hw, true))
	case fault.PCIeWidth, fault.GPURowRemap, fault.GPUXid, fault.HotGPU, fault.SlowGPU, fault.DeadCores, fault.WrongResults, fault.PCIeErrors, fault.NVLinkErrors, fault.WeakHBM, fault.NVLinkDown:
		return only(gpu(of("GPU"), hw, false))
	case fault.NVLinkUnseated:
		return only(gpu(of("GPU"), hw, false), of("NVLink"))
	}
	if e, ok := expectDelivered(f, hw); ok {
		return e
	}
	return expectOutsideNodes(f, inv)
}

// expectDelivered is expect for parts of the chassis, for those that are not what was bought, or not as fast, settings of
// the BIOS, and the clock.
func expectDelivered(f fault.Fault, hw virtual.FaultyPart) (expectation, bool) {
	of := func(kind partKind) suspect { return suspect{subject: subject.OfNode(f.Node), kind: kind} }
	switch f.Kind {
	case fault.PSULost:
		return expectation{want: []suspect{of("power supply")}}, true
	case fault.DeadFan:
		return expectation{want: []suspect{of("fan")}}, true
	case fault.WarmAir:
		return expectation{want: []suspect{of("inlet air")}}, true
	case fault.IMEXChannel:
		return expectation{want: []suspect{of("NVLink between nodes")}}, true
	case fault.WrongCPU, fault.SMTOff, fault.NUMASplit, fault.SlowCPU:
		return expectation{want: []suspect{of("CPU")}}, true
	case fault.TPMOff:
		return expectation{want: []suspect{of("TPM")}}, true
	case fault.SecureBootOff, fault.ModuleKeyMissing:
		return expectation{want: []suspect{of("Secure Boot")}}, true
	case fault.SmallDIMM, fault.SlowDIMM, fault.SlowMemory:
		return expectation{want: []suspect{of("DIMM")}}, true
	case fault.NoTime:
		return expectation{want: []suspect{of("clock")}}, true
	case fault.WrongDisk, fault.SlowDisk, fault.WornDisk:
		return expectation{want: []suspect{of("disk")}}, true
	case fault.SlowNetwork, fault.PathMTU:
		return expectation{want: []suspect{of("NIC")}}, true
	case fault.WrongGPU, fault.LessHBM, fault.PCIeSpeed:
		return expectation{want: []suspect{gpu(of("GPU"), hw, false)}}, true
	}
	return expectation{}, false
}

// expectOutsideNodes is expect for faults of what is no node: services, PDUs, switches and the
// controller.
func expectOutsideNodes(f fault.Fault, inv *inventory.Inventory) expectation {
	switch f.Kind {
	case fault.RepoGone:
		return expectation{says: "the repository", anywhere: func(s stage.Suspect) bool {
			return s.Subject.Kind == subject.Site && parsePart(s.Part).kind == "repository"
		}}
	case fault.OtherDHCP:
		return expectation{says: "the DHCP server", anywhere: func(s stage.Suspect) bool {
			return s.Subject.Kind == subject.Site && strings.HasPrefix(s.Part, "DHCP server ")
		}}
	case fault.PDUTrip:
		return expectation{want: []suspect{{subject: subject.ID{Kind: subject.PDU, Name: f.PDU}}}}
	case fault.ShelfSupply:
		return expectation{want: []suspect{{subject: subject.ID{Kind: subject.Shelf, Name: f.Shelf}, kind: "power supply"}}}
	case fault.BadLeaf:
		e := expectation{want: []suspect{{subject: subject.ID{Kind: subject.Switch, Name: f.Leaf}}}}
		if others := leavesLike(inv, f.Leaf); len(others) == 1 { // of two leaves neither can be told from the other
			e.beside = []suspect{{subject: subject.ID{Kind: subject.Switch, Name: others[0]}}}
		}
		return e
	case fault.BadUplink, fault.DeadTrunk:
		return expectation{says: "the link at " + f.Port, anywhere: func(s stage.Suspect) bool {
			return s.Subject.Kind == subject.Link && strings.Contains(s.Subject.Name, f.Port)
		}}
	case fault.SlowTrunk, fault.TrunkErrors:
		return expectTrunk(inv, f.Port)
	case fault.BadSpine:
		return expectSpine(inv, f.Leaf)
	case fault.SMDead, fault.OtherSM:
		return expectManager(inv, f)
	case fault.ControllerKill:
		return expectation{says: "nothing: the run is resumed"}
	}
	return expectPort(f, inv)
}

// expectTrunk is a cable between two switches; where the counters of its leaf are not
// read, what goes up from there.
func expectTrunk(inv *inventory.Inventory, port string) expectation {
	e := expectation{want: []suspect{{subject: subject.ID{Kind: subject.Link, Name: port}}}}
	if c := fault.FindTrunk(inv, port); c != nil && !isCounted(c.From.Switch) {
		e.want = append(e.want, suspect{subject: subject.ID{Kind: subject.Switch, Name: c.From.Switch.Name}, kind: "uplinks"})
	}
	return e
}

// expectSpine is a spine; where its counters are not read, the spines of its fabric.
func expectSpine(inv *inventory.Inventory, name string) expectation {
	e := expectation{want: []suspect{{subject: subject.ID{Kind: subject.Switch, Name: name}}}}
	for _, s := range inv.Switches {
		if s.Name == name && s.Fabric != nil && !isCounted(s) {
			e.want = append(e.want, suspect{subject: subject.ID{Kind: subject.Fabric, Name: s.Fabric.Name}, kind: "spines"})
		}
	}
	return e
}

// expectManager is the subnet manager of a fabric: that of the switch, or any one.
func expectManager(inv *inventory.Inventory, f fault.Fault) (e expectation) {
	for _, of := range managedBy(inv, f) {
		e.want = append(e.want, suspect{subject: subject.ID{Kind: subject.Fabric, Name: of.Name}, kind: "subnet manager"})
	}
	return e
}

// managedBy are the fabrics whose subnet manager a fault is about.
func managedBy(inv *inventory.Inventory, f fault.Fault) (list []*inventory.Fabric) {
	for _, of := range inv.Fabrics {
		if of.Kind == "infiniband" && (f.Leaf == "" || slices.ContainsFunc(inv.Switches, func(s *inventory.Switch) bool { return s.Name == f.Leaf && s.Fabric == of })) {
			list = append(list, of)
		}
	}
	return list
}

// isCounted reports whether the counters of a switch can be read: by the subnet manager's
// controller on InfiniBand, by its login elsewhere.
func isCounted(s *inventory.Switch) bool {
	return s.Login != nil || s.Fabric != nil && s.Fabric.Kind == "infiniband"
}

// expectPort is expect for faults of a node's ports and of the cables in them.
func expectPort(f fault.Fault, inv *inventory.Inventory) expectation {
	n, ok := inv.Node(f.Node)
	if !ok {
		return expectation{}
	}
	nic, i, err := fault.PortOf(n, f.Port)
	if err != nil {
		return expectation{}
	}
	port := fmt.Sprintf("%s/%d", nic.Name, i)
	link := func(node string) suspect {
		return suspect{subject: subject.ID{Kind: subject.Link, Name: node + "/" + port}}
	}
	plug := func(node string) suspect { // the same port of the node, by its name and not by its rail
		return named(suspect{subject: subject.OfNode(node), kind: "port"}, port, func(id string) bool { return id == port })
	}
	rail := func(node string) suspect {
		text := strconv.Itoa(nic.Ports[i].Rail)
		return named(suspect{subject: subject.OfNode(node), kind: "rail"}, text, func(id string) bool { return id == text })
	}
	end := func(node string) []suspect { return []suspect{rail(node), link(node), plug(node)} } // of a bad link
	switch f.Kind {
	case fault.WrongMTU:
		at := nic.Ports[i].PCI
		return expectation{want: append(end(f.Node), named(suspect{subject: subject.OfNode(f.Node), kind: "NIC"}, port, func(id string) bool { return id == port || id == at }))}
	case fault.MissingNIC, fault.OddFirmware, fault.NICSettingLost, fault.WrongNIC, fault.WrongOptic:
		at := nic.Ports[i].PCI
		return expectation{want: []suspect{named(suspect{subject: subject.OfNode(f.Node), kind: "NIC"}, port, func(id string) bool { return id == port || id == at })}}
	case fault.CableSwap:
		return expectation{want: []suspect{link(f.Node), link(f.With), plug(f.Node), plug(f.With)}}
	case fault.RailConfig:
		if f.End == fault.EndSwitch {
			return expectation{says: "the switch port of " + f.Node + "/" + port, anywhere: func(s stage.Suspect) bool {
				return s.Subject.Kind == subject.Switch && strings.Contains(s.Part, "("+f.Node+"/"+port+")")
			}}
		}
	case fault.DegradedLink, fault.LinkDown:
		e := expectation{want: end(f.Node)}
		if len(inv.Nodes) == 2 { // neither end can be told from the other
			for _, other := range inv.Nodes {
				e.beside = append(e.beside, end(other.Name)...)
			}
		}
		return e
	}
	return expectation{want: end(f.Node)}
}

// named is a suspect whose id is compared.
func named(s suspect, says string, is func(string) bool) suspect {
	s.says, s.is = says, is
	return s
}

// gpu is a GPU by its number or its address; of one that is not there the evidence may
// say no more than that one is missing.
func gpu(s suspect, hw virtual.FaultyPart, gone bool) suspect {
	number := strconv.Itoa(hw.GPU)
	return named(s, number, func(id string) bool {
		return id == number || id != "" && id == hw.GPUAddress || gone && id == ""
	})
}

// hasWord reports whether one of the words of a text is this one.
func hasWord(text, word string) bool {
	return word != "" && slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" (),:;", r) }), word)
}

// leavesLike lists the other leaves that carry the same rails as a leaf.
func leavesLike(inv *inventory.Inventory, leaf string) (others []string) {
	rails := map[string]map[int]bool{}
	for _, c := range inv.Cables {
		for _, ends := range [][2]inventory.CableEnd{{c.From, c.To}, {c.To, c.From}} {
			if ends[0].Switch == nil || ends[1].Node == nil || ends[1].NIC == nil {
				continue
			}
			if rails[ends[0].Switch.Name] == nil {
				rails[ends[0].Switch.Name] = map[int]bool{}
			}
			rails[ends[0].Switch.Name][ends[1].NIC.Ports[ends[1].Port].Rail] = true
		}
	}
	for name, of := range rails {
		shares := false
		for r := range of {
			shares = shares || rails[leaf][r]
		}
		if name != leaf && shares {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return others
}
