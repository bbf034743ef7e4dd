// SPDX-License-Identifier: Apache-2.0

// Package checksum lets every GPU of a node compute the same numbers for some time, and
// compares what came out: with what the same GPU computed a moment ago, and over all nodes
// of a role. A GPU that computes wrong results without an error shows in no other test: its
// memory, its links and its clock are as they should be.
//
// Results are bit-identical only for one model, one driver and one runtime with a fixed
// algorithm. What is compared is therefore alike in all of these; the program is
// ironrail's own (images/driver/tools/checksum).
package checksum

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// Record is what the program printed on one node.
type Record struct {
	Runtime string `json:"runtime"` // cuda or hip
	Version int    `json:"version"` // of the program
	// RuntimeVersion and Module are the versions of the runtime that the program was compiled
	// with, and of the driver's kernel module.
	RuntimeVersion int    `json:"runtime_version"`
	Module         string `json:"module,omitempty"`
	Steps          int    `json:"steps"` // of each thread of a round
	GPUs           []GPU  `json:"gpus"`
}

// GPU is what one GPU computed.
type GPU struct {
	Address         string `json:"address"` // PCI
	Name            string `json:"name"`
	Arch            string `json:"arch"`
	Multiprocessors int    `json:"multiprocessors"`
	Units           []Unit `json:"units,omitempty"`
	Failed          string `json:"failed,omitempty"` // what the driver said where it could not compute
}

// Unit is what came out of one kind of unit.
type Unit struct {
	Name     string `json:"name"`     // fp32, fp64, int or matrix
	Checksum string `json:"checksum"` // that came most often, 16 hexadecimal digits
	Rounds   int    `json:"rounds"`
	Others   int    `json:"others,omitempty"` // rounds with another checksum
}

// line is one line of the program.
type line struct {
	Program         string `json:"program"`
	Version         int    `json:"version"`
	Runtime         string `json:"runtime"`
	RuntimeVersion  int    `json:"runtime_version"`
	Module          string `json:"module"`
	Steps           int    `json:"steps"`
	GPU             string `json:"gpu"`
	Name            string `json:"name"`
	Arch            string `json:"arch"`
	Multiprocessors int    `json:"multiprocessors"`
	Result          string `json:"result"`
	Unit            string `json:"unit"`
	Checksum        string `json:"checksum"`
	Rounds          int    `json:"rounds"`
	Others          int    `json:"others"`
	Error           string `json:"error"`
	Text            string `json:"text"`
	End             bool   `json:"end"`
	GPUs            int    `json:"gpus"`
}

// programName is what the program calls itself.
const programName = "ironrail_checksum"

// unitNames are the kinds of units that every GPU has; matrix comes where the GPU has such.
var unitNames = []string{"fp32", "fp64", "int"}

// Parse reads what the program printed. An error means that it did not come to its end, or
// is another program; a GPU that failed is none.
func Parse(printed []byte) (Record, error) {
	var r Record
	ended := -1
	for text := range bytes.Lines(printed) {
		var l line
		if json.Unmarshal(bytes.TrimSpace(text), &l) != nil {
			continue // what a runtime prints beside
		}
		switch {
		case l.Program == programName:
			r = Record{Runtime: l.Runtime, Version: l.Version, RuntimeVersion: l.RuntimeVersion, Module: strings.TrimSpace(l.Module), Steps: l.Steps}
		case l.GPU != "":
			g := r.gpu(l.GPU)
			g.Name, g.Arch, g.Multiprocessors = l.Name, l.Arch, l.Multiprocessors
		case l.Result != "":
			g := r.gpu(l.Result)
			g.Units = append(g.Units, Unit{l.Unit, l.Checksum, l.Rounds, l.Others})
		case l.Error != "":
			r.gpu(l.Error).Failed = cmp.Or(l.Text, "it says not why")
		case l.End:
			ended = l.GPUs
		}
	}
	switch {
	case r.Runtime == "":
		return r, errkind.New(errkind.Invalid, "%s printed nothing of itself", programName)
	case ended < 0:
		return r, errkind.New(errkind.Interrupted, "%s did not come to its end", programName)
	case ended != len(r.GPUs):
		return r, errkind.New(errkind.Invalid, "%s says that it ran on %d GPUs and has results of %d", programName, ended, len(r.GPUs))
	}
	return r, r.Whole(ended)
}

// gpu is that at an address, which is added where it is new.
func (r *Record) gpu(address string) *GPU {
	address = strings.ToLower(address)
	i := slices.IndexFunc(r.GPUs, func(g GPU) bool { return g.Address == address })
	if i < 0 {
		i, r.GPUs = len(r.GPUs), append(r.GPUs, GPU{Address: address})
	}
	return &r.GPUs[i]
}

// Whole asks for so many GPUs, and for two rounds of each unit of each that did not fail.
func (r Record) Whole(gpus int) error {
	if len(r.GPUs) < gpus {
		return errkind.New(errkind.Mismatch, "%s ran on %d GPUs of %d", programName, len(r.GPUs), gpus)
	}
	seen := map[string]bool{}
	for _, g := range r.GPUs {
		if g.Address == "" || seen[g.Address] {
			return errkind.New(errkind.Invalid, "%s has results of a GPU without an address of its own (%q)", programName, g.Address)
		}
		seen[g.Address] = true
		if name := g.lacks(); g.Failed == "" && name != "" {
			return errkind.New(errkind.Invalid, "%s has no two rounds of %s of the GPU at %s", programName, name, g.Address)
		}
	}
	return nil
}

// lacks names a unit without a checksum of two rounds; "": all have one.
func (g GPU) lacks() string {
	for _, name := range unitNames {
		if !slices.ContainsFunc(g.Units, func(u Unit) bool { return u.Name == name }) {
			return name
		}
	}
	for _, u := range g.Units {
		if u.Checksum == "" || u.Rounds < 2 {
			return u.Name
		}
	}
	return ""
}

const (
	doReplace = "Have the GPU replaced: it computes wrong results. Send the checksums with it."
	doDriver  = "Compare the node's driver, its runtime and its BIOS with those of the others, and install it anew. If its GPUs still compute something else, look at what they share: their board, its power and its clock."
)

// Judge returns what is wrong with GPUs by what their own node shows: one that failed, and
// one that computed something else from the same numbers.
func (r Record) Judge(names map[string]string) (faults []judge.Fault) {
	for _, g := range r.GPUs {
		part := burnin.NameGPU(names, g.Address)
		if g.Failed != "" {
			faults = append(faults, judge.Fault{Part: part, Cause: part + ": it could not compute: " + g.Failed, Evidence: []string{programName + ": " + g.Failed}, Action: "Read dmesg of the node; reset the GPU, and have it replaced if it fails again."})
			continue
		}
		var causes, evidence []string
		for _, u := range g.Units {
			if u.Others > 0 {
				causes = append(causes, fmt.Sprintf("%d of %d rounds of %s", u.Others, u.Rounds, u.Name))
				evidence = append(evidence, fmt.Sprintf("%s: %s: %s came most often, and another checksum %d times in %d rounds", programName, u.Name, u.Checksum, u.Others, u.Rounds))
			}
		}
		if len(causes) > 0 {
			faults = append(faults, judge.Fault{Part: part, Cause: part + ": it computed another result from the same numbers in " + strings.Join(causes, ", "), Evidence: evidence, Action: doReplace})
		}
	}
	return faults
}

// Node is what one node computed.
type Node struct {
	Name  string
	Names map[string]string // what its GPUs are called, by address
	Record
}

// Row is what GPUs that are alike computed with one kind of unit.
type Row struct {
	Unit     string `json:"unit"`
	Of       string `json:"of"`                 // what is alike
	Checksum string `json:"checksum,omitempty"` // of most; "": no reference
	GPUs     int    `json:"gpus"`               // that were compared
	Others   int    `json:"others"`             // that computed something else
}

// Odd is a part of a node that computed something else than those that are alike.
type Odd struct {
	Node string
	judge.Fault
}

// Fewest is how many GPUs that are alike make a reference: of two that differ, nobody knows
// which is right.
const Fewest = 3

// vote is one GPU's checksum of one unit.
type vote struct {
	node, address, checksum string
}

// differs is a unit of a GPU that computed something else than those that are alike.
type differs struct {
	from     Row
	checksum string
}

func (d differs) String() string {
	return fmt.Sprintf("%s: %s, and %d of %d GPUs have %s (%s)", d.from.Unit, d.checksum, d.from.GPUs-d.from.Others, d.from.GPUs, d.from.Checksum, d.from.Of)
}

// CompareNodes holds the checksums of GPUs that are alike against each other. More than half
// of at least three make the reference. Where there is none, nobody is blamed, and a note
// says so.
func CompareNodes(nodes []Node) (rows []Row, odd []Odd, notes []string) {
	votes := map[[2]string][]vote{} // by what is alike, and unit
	alike := map[string]int{}       // GPUs
	for _, n := range nodes {
		for _, g := range n.GPUs {
			if g.Failed != "" {
				continue
			}
			of := n.alike(g)
			alike[of]++
			for _, u := range g.Units {
				key := [2]string{of, u.Name}
				votes[key] = append(votes[key], vote{n.Name, g.Address, u.Checksum})
			}
		}
	}
	wrong := map[string]map[string][]differs{} // by node and address
	for _, key := range slices.SortedFunc(maps.Keys(votes), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		row, others := elect(votes[key])
		row.Of, row.Unit = key[0], key[1]
		rows = append(rows, row)
		if all := alike[key[0]]; row.GPUs < all {
			notes = append(notes, fmt.Sprintf("checksums of %s: %d of %d GPUs that are alike have none (%s)", row.Unit, all-row.GPUs, all, row.Of))
		}
		switch {
		case row.GPUs < Fewest:
			notes = append(notes, fmt.Sprintf("checksums of %s: no reference: %d GPUs are too few (%s)", row.Unit, row.GPUs, row.Of))
		case row.Checksum == "":
			notes = append(notes, fmt.Sprintf("checksums of %s: no reference: of %d GPUs no more than half computed the same (%s)", row.Unit, row.GPUs, row.Of))
		}
		for _, v := range others {
			if wrong[v.node] == nil {
				wrong[v.node] = map[string][]differs{}
			}
			wrong[v.node][v.address] = append(wrong[v.node][v.address], differs{row, v.checksum})
		}
	}
	for _, n := range nodes {
		odd = append(odd, n.odd(wrong[n.Name])...)
	}
	return rows, odd, notes
}

// alike is what must be the same so that results are: systems.md calls it one model, driver,
// library and algorithm.
func (r Record) alike(g GPU) string {
	return fmt.Sprintf("%s, %s, %d multiprocessors; driver %s, %s %d, version %d, %d steps", g.Name, g.Arch, g.Multiprocessors, cmp.Or(r.Module, "of no version"), r.Runtime, r.RuntimeVersion, r.Version, r.Steps)
}

// elect finds the reference among GPUs that are alike, and who differs from it.
func elect(votes []vote) (row Row, others []vote) {
	row.GPUs = len(votes)
	count := map[string]int{}
	for _, v := range votes {
		count[v.checksum]++
	}
	for _, sum := range slices.Sorted(maps.Keys(count)) {
		if row.GPUs >= Fewest && 2*count[sum] > row.GPUs {
			row.Checksum = sum
		}
	}
	if row.Checksum == "" {
		return row, nil
	}
	for _, v := range votes {
		if v.checksum != row.Checksum {
			others = append(others, v)
		}
	}
	row.Others = len(others)
	return row, others
}

// odd are the parts of a node that computed something else: GPUs, or, where it is every GPU
// of several, what they share.
func (n Node) odd(wrong map[string][]differs) (list []Odd) {
	var all []string
	for _, at := range slices.Sorted(maps.Keys(wrong)) {
		part := burnin.NameGPU(n.Names, at)
		var units, evidence []string
		for _, d := range wrong[at] {
			units, evidence = append(units, d.from.Unit), append(evidence, d.String())
			all = append(all, part+": "+d.String())
		}
		list = append(list, Odd{n.Name, judge.Fault{Part: part, Evidence: evidence, Action: doReplace,
			Cause: fmt.Sprintf("%s: it computes something else from the same numbers than GPUs that are alike (%s), each time, and without an error", part, strings.Join(units, ", "))}})
	}
	if len(list) < 2 || len(list) < len(n.GPUs) {
		return list
	}
	return []Odd{{n.Name, judge.Fault{Part: "GPUs", Evidence: all, Action: doDriver,
		Cause: fmt.Sprintf("all %d GPUs of the node compute something else from the same numbers than those of other nodes that are alike", len(list))}}}
}
