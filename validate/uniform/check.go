// SPDX-License-Identifier: Apache-2.0

package uniform

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// VersionsFact is what a node's gates read of it that its role has in common.
const VersionsFact = fact.Name[Record]("validate.versions")

// Fact is the last comparison of a role's nodes.
const Fact = fact.Name[Report]("validate.uniform")

// Report is what the nodes of a role have in common, and who differs.
type Report struct {
	At    time.Time `json:"at"`
	Role  string    `json:"role"`
	Nodes int       `json:"nodes"` // that were compared, those in service among them
	Rows  []Row     `json:"rows"`
	Notes []string  `json:"notes,omitempty"`
}

// uniformGates are the names under which a site allows nodes to differ, by the
// area of what differs.
var uniformGates = map[Area]string{
	Firmware: OddFirmware, Setting: OddSettings, System: OddSystem, Model: OddModel,
}

// Check compares the nodes of a role by what their gates have read.
var Check = target.Check{Name: "uniform", Scope: target.EachRole, Needs: []string{"gates"}, For: target.Node(target.HasGates), Fewest: Fewest, Plan: planUniform, Run: runUniform,
	Duration: target.Duration{Low: 10 * time.Millisecond, Mid: 100 * time.Millisecond, High: time.Second, Source: "estimate: it compares what the gates have read, and asks no node"},
	Docs:     target.Docs{Says: "parts, firmware, settings and kernels of a role's nodes, against most of them", Page: "gates.md"}}

// planUniform compares what the gates of a role's nodes have read. It asks no
// node: those in service are compared as they were when they were accepted.
func planUniform(r target.Request) plan.Step {
	title := fmt.Sprintf("compare firmware, settings and kernels of %d nodes", len(r.Group.Nodes))
	return target.ComparisonStep(r, title, Fact.Of(result.OfGroup(r.Name)))
}

// written is what the install stage says of an image on a node.
const written = fact.Name[struct {
	Image string `json:"image"`
}]("install.written")

// CohortOf returns the same for nodes that are meant to be the same: of one hardware
// block, image and set of drivers. In the midst of a rollout a role has two.
func CohortOf(run stage.Run, n *inventory.Node) string {
	w, _ := target.ReadFact(run, written, subject.OfNode(n.Name))
	text := n.Hardware.Name + "\n" + w.Image
	for _, d := range n.Drivers {
		text += "\n" + strings.Join(append([]string{d.Kind, d.Name, d.Version}, d.Packages...), " ")
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// runUniform compares a role, and blames the odd ones among the nodes that the
// step is about.
func runUniform(ctx context.Context, j *target.Job) error {
	run, g := j.Run, *j.Group
	left := target.FrozenMembers(j.Inv, run)
	about, _ := target.InFocus(j.Step, left)
	r := Report{At: run.Clock().Now().UTC(), Role: g.Set}
	mine := map[string]bool{}
	for _, n := range about {
		mine[n.Name] = true
	}
	cohorts, order := readRecords(run, g, result.SetOf(target.NodeNames(left)))
	for _, c := range order {
		r.Nodes += len(cohorts[c])
		r.Rows = append(r.Rows, CompareNodes(cohorts[c])...)
		if len(cohorts[c]) < Fewest {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: too few are meant to be the same for a majority: they were compared with nobody", result.NameSome(namesOf(cohorts[c]))))
		}
	}
	judged := &uniformity{inv: j.Inv, role: g.Set, faults: map[string][]difference{}}
	for _, row := range r.Rows {
		judged.row(row, mine)
	}
	for _, c := range order {
		judged.unlikeBlock(cohorts[c], mine)
		judged.silent(cohorts[c], mine)
	}
	r.Notes = append(r.Notes, judged.notes...)
	for _, text := range r.Notes {
		run.Emit(event.Event{Type: event.Note, Text: text})
	}
	if err := judged.reportBlock(ctx, run, mine); err != nil {
		return err
	}
	for _, n := range about {
		if err := judged.reportNode(ctx, run, n.Name); err != nil {
			return err
		}
	}
	return target.LearnFact(ctx, run, Fact, target.ReportOf(j.Step, fact.Name[result.Report](Fact), g.Set), r)
}

// readRecords returns what was read of the members that are left and of nodes in service,
// by cohort.
func readRecords(run stage.Run, g target.Group, left map[string]bool) (map[string][]Node, []string) {
	cohorts, order := map[string][]Node{}, []string(nil)
	for _, n := range target.Compared(run, g, left) {
		rec, ok := target.ReadFact(run, VersionsFact, subject.OfNode(n.Name))
		if !ok {
			continue
		}
		if cohorts[rec.Cohort] == nil {
			order = append(order, rec.Cohort)
		}
		cohorts[rec.Cohort] = append(cohorts[rec.Cohort], Node{Name: n.Name, Record: rec})
	}
	return cohorts, order
}

func namesOf(nodes []Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}
