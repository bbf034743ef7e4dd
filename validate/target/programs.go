// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/inventory"
)

// need is what a program is called in messages, and how a node gets it.
type need struct{ name, block string }

// needs are the programs that a driver of kind tools brings.
var needs = map[kinds.Program]need{
	kinds.MPI:       {"Open MPI (mpirun)", ""},
	kinds.MPI4Py:    {"Open MPI for Python (mpi4py)", ""},
	kinds.WriteBW:   {"perftest (ib_write_bw)", ""},
	kinds.NCCLTests: {"the tests of NCCL with MPI (all_reduce_perf)", "nccl_tests"},
	kinds.RCCLTests: {"the tests of RCCL with MPI (all_reduce_perf)", "rccl_tests"},
}

// Lacking finds the first node of a group to which nothing brings a program that a test
// runs. What an image has that somebody else made is not known: there it is a warning, and
// so it is of nodes in service, which are not tested again for it.
func (p *Problems) Lacking(g Group, at hcl.Range, test string, programs ...kinds.Program) {
	type alike struct {
		i       *inventory.Image
		d       string
		service bool
	}
	seen := map[alike]bool{}
	for _, n := range g.Nodes {
		k := alike{n.Image, fmt.Sprint(n.Drivers), p.InService != nil && p.InService(n.Name)}
		if n.Image == nil || seen[k] {
			continue
		}
		seen[k] = true
		var names []string
		block := ""
		for _, program := range programs {
			if !kinds.Brought(n, program) {
				names = append(names, needs[program].name)
				block += needs[program].block
			}
		}
		if len(names) == 0 {
			continue
		}
		hint := `Add driver "tools" "tools" {}, and driver.tools to the end of the drivers of the node's role.`
		if block != "" {
			hint = fmt.Sprintf(`Add driver "tools" "tools" { %s { source = "..." checksum = "sha256:..." } }, and driver.tools to the end of the drivers of the node's role.`, block)
		}
		if d := distribution.OfDisk(n.Image); d != nil && !d.Drivers && !kinds.Sealed(n.Image) {
			hint = "Put it into the image: drivers of kind \"tools\" are not installed on its system by this version."
		}
		switch {
		case k.service:
			p.Add(hcl.DiagWarning, at, "Nothing brings a program of a test", "The %s test of validation %q runs %s, and nothing brings it to node %s, which is in service: it is not tested again before that is changed or installed, and fails the test then. %s", test, g.Validation.Name, strings.Join(names, " and "), n.Name, hint)
			continue
		case kinds.Sealed(n.Image):
			p.Add(hcl.DiagError, at, "Nothing brings a program of a test", "The %s test of validation %q runs %s, and nothing brings it to node %s. %s", test, g.Validation.Name, strings.Join(names, " and "), n.Name, hint)
		default:
			p.Add(hcl.DiagWarning, at, "Nothing is known to bring a program of a test", "The %s test of validation %q runs %s, and no driver of node %s brings it; whether image %q has it is not known. %s", test, g.Validation.Name, strings.Join(names, " and "), n.Name, n.Image.Name, hint)
		}
		return
	}
}

// Unlike finds nodes of one test whose Open MPI is of another release than that of the first: mpirun asks
// for one version on all nodes of a job (FAQ of Open MPI, "running"), and looks for its daemon on each where
// it has its own. Nodes whose packages are not known to bring it are not looked at; of nodes in service it is
// a warning.
func (p *Problems) Unlike(g Group, at hcl.Range, test string) {
	var first *inventory.Node
	var of distribution.Release
	for _, n := range g.Nodes {
		if !kinds.Brought(n, kinds.MPI) {
			continue
		}
		r, known := distribution.OfImage(n.Image)
		switch {
		case !known || r == of:
			continue
		case first == nil:
			first, of = n, r
			continue
		}
		sev, note := hcl.DiagError, ""
		if p.InService != nil && p.InService(first.Name) && p.InService(n.Name) {
			sev, note = hcl.DiagWarning, " Both are in service; they fail the test when they are tested again."
		}
		p.Add(sev, at, "Nodes of several systems in one test", "The %s test of validation %q runs one job of Open MPI on all of its nodes; node %s has %s (image %q), and node %s has %s (image %q), and Open MPI asks for one version, at one place, on all nodes of a job. Give the nodes of each system a validation block of their own.%s", test, g.Validation.Name, first.Name, of, first.Image.Name, n.Name, r, n.Image.Name, note)
		return
	}
}
