// Package fault is the language in which faults of a rehearsal are written: what
// breaks, on which part, and when. Each kind changes one physical quantity of
// the virtual rack (a byte, a lane, a voltage, a record); it never tells the
// code under rehearsal anything.
package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/diag"
)

// Kind names what breaks.
type Kind string

// The kinds.
const (
	BMCDead          Kind = "bmc-dead"
	BMCLocked        Kind = "bmc-locked"
	BMCWrongPassword Kind = "bmc-wrong-password"
	BMCWriteLost     Kind = "bmc-write-lost"
	BMCSwapped       Kind = "bmc-swapped"
	DHCPLoss         Kind = "dhcp-loss"
	HTTPStall        Kind = "http-stall"
	WrongSerial      Kind = "wrong-serial"
	MissingDIMM      Kind = "missing-dimm"
	MissingNIC       Kind = "missing-nic"
	DiskWriteError   Kind = "disk-write-error"
	KernelHang       Kind = "kernel-hang"
	RepoGone         Kind = "repo-gone"
	CableSwap        Kind = "cable-swap"
	DegradedLink     Kind = "degraded-link"
	PDUTrip          Kind = "pdu-trip"
	ControllerKill   Kind = "controller-kill"
)

// Attributes that a kind may take or needs.
const (
	attrNode = "node"
	attrWith = "with"
	attrPDU  = "pdu"
	attrPort = "port"
	attrAt   = "at"
)

// Row is one kind as the documents list it.
type Row struct {
	Kind     Kind
	Does     string   // the physical quantity that it changes
	Needs    []string // attributes without which it says nothing
	Takes    []string // further attributes
	At       string   // when it happens, unless said otherwise; empty: from the start
	Suspects string   // how small the evidence lets the suspect set be
}

// Rows is the table of kinds.
func Rows() []Row { return slices.Clone(rows) }

var rows = []Row{
	{Kind: BMCDead, Does: "the BMC's network port has no link", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the BMC of that node"},
	{Kind: BMCLocked, Does: "the BMC's counter of failed log-ins stands at its limit", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the BMC of that node"},
	{Kind: BMCWrongPassword, Does: "one byte of the password that the BMC stores differs", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the BMC of that node"},
	{Kind: BMCWriteLost, Does: "the BMC's flash keeps no boot setting: writes are answered with success", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the BMC of that node"},
	{Kind: BMCSwapped, Does: "the network cables of two BMCs are exchanged", Needs: []string{attrNode, attrWith},
		Suspects: "the BMCs of the two nodes"},
	{Kind: DHCPLoss, Does: "no datagram of the node's boot NIC reaches the relay", Needs: []string{attrNode}, Takes: []string{attrAt},
		Suspects: "the boot NIC with its cable and switch port"},
	{Kind: HTTPStall, Does: "in the middle of the image the node's cable carries no byte any more", Needs: []string{attrNode}, Takes: []string{attrAt},
		At: "install.write", Suspects: "the boot NIC with its cable and switch port"},
	{Kind: WrongSerial, Does: "one byte of the chassis' serial number differs", Needs: []string{attrNode},
		Suspects: "the chassis of that node"},
	{Kind: MissingDIMM, Does: "one DIMM slot is empty", Needs: []string{attrNode},
		Suspects: "the memory of that node; which slot only where the firmware says"},
	{Kind: MissingNIC, Does: "one PCI function of a fabric NIC is not there", Needs: []string{attrNode}, Takes: []string{attrPort},
		Suspects: "that NIC"},
	{Kind: DiskWriteError, Does: "sectors of the system disk cannot be written", Needs: []string{attrNode},
		Suspects: "that disk"},
	{Kind: KernelHang, Does: "the install kernel executes no instruction any more after its start", Needs: []string{attrNode},
		Suspects: "the node, without a part: a silent kernel says no more"},
	{Kind: RepoGone, Does: "the files of the driver repository are not on the controller any more", Takes: []string{attrAt},
		At: "drivers", Suspects: "the repository; no node"},
	{Kind: CableSwap, Does: "two fabric cables are plugged into each other's switch port", Needs: []string{attrNode, attrWith}, Takes: []string{attrPort},
		Suspects: "the two cables"},
	{Kind: DegradedLink, Does: "a fabric link has one lane of four and bit errors", Needs: []string{attrNode}, Takes: []string{attrPort, attrAt},
		Suspects: "that port with its cable; with two nodes both ends, since neither can be told from the other"},
	{Kind: PDUTrip, Does: "the breaker of a PDU opens: its outlets have no voltage", Needs: []string{attrPDU}, Takes: []string{attrAt},
		At: "install.write", Suspects: "that PDU"},
	{Kind: ControllerKill, Does: "the controller's process ends between two records of its journal", Takes: []string{attrNode, attrAt},
		At: "install.write", Suspects: "nothing: the run is resumed"},
}

// Find returns the row of a kind.
func Find(k Kind) (Row, bool) {
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Kind == k })
	if i < 0 {
		return Row{}, false
	}
	return rows[i], true
}

// Fault is one planted fault.
type Fault struct {
	Kind Kind   `json:"kind"`
	Node string `json:"node,omitempty"`
	With string `json:"with,omitempty"` // the other node
	PDU  string `json:"pdu,omitempty"`  // scoped: r01/a
	Port string `json:"port,omitempty"` // of the node: rail/0; empty: the first of a fabric
	At   string `json:"at,omitempty"`   // step, without the node: install.write; empty: from the start
	// Decl is where it was written; zero for one of the command line.
	Decl hcl.Range `json:"-"`
}

// Where names the part in words.
func (f Fault) Where() string {
	var words []string
	for _, w := range []string{f.PDU, f.Node, f.With} {
		if w != "" {
			words = append(words, w)
		}
	}
	where := strings.Join(words, " and ")
	if f.Port != "" {
		where += " " + f.Port
	}
	if where == "" {
		where = "controller"
	}
	return where
}

// attributes lists what is set.
func (f Fault) attributes() map[string]string {
	all := map[string]string{}
	for name, v := range map[string]string{attrNode: f.Node, attrWith: f.With, attrPDU: f.PDU, attrPort: f.Port, attrAt: f.At} {
		if v != "" {
			all[name] = v
		}
	}
	return all
}

// complete checks a fault by itself and fills in when it happens.
func (f *Fault) complete() error {
	row, ok := Find(f.Kind)
	if !ok {
		return fmt.Errorf("%q is no kind of fault.%s The kinds are %s", f.Kind, diag.DidYouMean(string(f.Kind), names()), strings.Join(names(), ", "))
	}
	set := f.attributes()
	for _, need := range row.Needs {
		if set[need] == "" {
			return fmt.Errorf("fault %s needs %s: %s", f.Kind, need, row.Does)
		}
	}
	for name := range set {
		if !slices.Contains(row.Needs, name) && !slices.Contains(row.Takes, name) {
			return fmt.Errorf("fault %s takes no %q; it takes %s", f.Kind, name, strings.Join(append(slices.Clone(row.Needs), row.Takes...), ", "))
		}
	}
	if f.At == "" {
		f.At = row.At
	}
	return nil
}

// names lists the kinds.
func names() []string {
	var all []string
	for _, r := range rows {
		all = append(all, string(r.Kind))
	}
	return all
}
