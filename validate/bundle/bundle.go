// SPDX-License-Identifier: Apache-2.0

// Package bundle has vendors' own programs collect what they know of a part when it is
// found bad, before a reset erases it: nvidia-bug-report.sh, rocm_techsupport.sh and mlxlink
// on the node, and the diagnostic data of its BMC. Each is bounded in time and size and kept
// as evidence, which only its owner may read; what a node does not have is noted, and is no
// error of the test.
package bundle

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/target"
)

// Bounds.
const (
	mostBytes = 32 << 20        // of a file; nvidia-bug-report.log.gz of eight GPUs has some MB
	mostTime  = 3 * time.Minute // of all programs, which run at once
	leastTime = 20 * time.Second
	spareTime = 15 * time.Second // that the step keeps
	atOnce    = 8                // nodes
	mostNodes = 16               // of a step: of more the cause is a common one
	mostKept  = 24               // entries of a node's fact; the newest are kept
)

// Fact is what was collected of a node, the newest last.
const Fact = fact.Name[[]Collected]("validate.bundles")

// Collected is one file, or why there is none.
type Collected struct {
	At      time.Time `json:"at"`
	Step    string    `json:"step"`
	Part    string    `json:"part,omitempty"` // of the node, as the finding names it; empty: the node
	Program string    `json:"program"`
	Ref     string    `json:"ref,omitempty"` // of the evidence
	Bytes   int64     `json:"bytes,omitempty"`
	Why     string    `json:"why,omitempty"` // there is no file
	// Module is what mlxlink says of the transceiver or cable in a port.
	Module *Module `json:"module,omitempty"`
}

// Module is a transceiver, or an end of a cable, as its memory tells.
type Module struct {
	Model    string `json:"model"`
	Serial   string `json:"serial,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Power    string `json:"power,omitempty"` // light by lane, as printed: dBm, with the limits of alarms
}

// Run is a step's Run that remembers what was blamed. Collect then collects.
type Run struct {
	stage.Run
	inv   *inventory.Inventory
	nodes onnode.Nodes
	bmcs  func(node string) (chassis.BMC, error) // nil: none is asked
	step  plan.Step
	began time.Time

	mu     sync.Mutex // guards blamed
	blamed []suspect
}

// suspect is a part of a node that was blamed.
type suspect struct{ node, part string }

// Watch returns the Run of a step that remembers what is blamed.
func Watch(run stage.Run, st plan.Step, inv *inventory.Inventory, nodes onnode.Nodes, bmcs func(node string) (chassis.BMC, error)) *Run {
	return &Run{Run: run, inv: inv, nodes: nodes, bmcs: bmcs, step: st, began: run.Clock().Now()}
}

// Blame implements stage.Run.
func (r *Run) Blame(ctx context.Context, f stage.Finding) error {
	if err := r.Run.Blame(ctx, f); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range f.Suspects {
		if x := (suspect{s.Subject.Name, s.Part}); s.Subject.Kind == subject.Node && !slices.Contains(r.blamed, x) {
			r.blamed = append(r.blamed, x)
		}
	}
	return nil
}

// Collect collects of all that was blamed, several nodes at once, within what is left of
// the step's time. An error is of a record that could not be made durable.
func (r *Run) Collect(ctx context.Context) error {
	r.mu.Lock()
	blamed := slices.Clone(r.blamed)
	r.mu.Unlock()
	var names []string
	for _, s := range blamed {
		if !slices.Contains(names, s.node) {
			names = append(names, s.node)
		}
	}
	if len(names) > mostNodes {
		names = names[:mostNodes]
	}
	wait := r.left(len(names))
	var wg sync.WaitGroup
	errs := make([]error, len(names))
	slots := make(chan struct{}, atOnce)
	for i, name := range names {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if n, ok := r.inv.Node(name); ok {
				errs[i] = r.collect(ctx, n, blamed, wait)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// left is how long collecting of one node may take: no longer than the step has, shared by
// those that wait for others.
func (r *Run) left(nodes int) time.Duration {
	limit := r.step.Deadline.Limit
	if limit <= 0 {
		return mostTime
	}
	left := limit - r.Clock().Now().Sub(r.began) - spareTime
	return min(mostTime, left/time.Duration(max(1, (nodes+atOnce-1)/atOnce)))
}

// collect collects of one node, all programs at once, and learns it.
func (r *Run) collect(ctx context.Context, n *inventory.Node, blamed []suspect, wait time.Duration) error {
	jobs := r.jobs(n, blamed)
	if len(jobs) == 0 {
		return nil
	}
	got := make([]Collected, len(jobs))
	limited, stop := r.Clock().WithTimeout(ctx, max(wait, 0))
	defer stop()
	var wg sync.WaitGroup
	for i, j := range jobs {
		wg.Go(func() { got[i] = r.one(limited, j, wait) })
	}
	wg.Wait()
	was, _ := target.ReadFact(r, Fact, subject.OfNode(n.Name))
	all := append(was, got...)
	all = all[max(0, len(all)-mostKept):]
	f, err := Fact.New(subject.OfNode(n.Name), all, "")
	if err != nil {
		return err
	}
	return r.Learn(ctx, f)
}

// job is one program for one part of a node.
type job struct {
	part, program, file string
	port                bool // it prints what mlxlink prints of a port
	do                  func(context.Context) ([]byte, error)
}

// one runs a job and keeps what it made.
func (r *Run) one(ctx context.Context, j job, wait time.Duration) Collected {
	c := Collected{At: r.Clock().Now().UTC(), Step: string(r.step.ID), Part: j.part, Program: j.program}
	if wait < leastTime {
		c.Why = "not collected: the step had no time left"
		return c
	}
	content, err := j.do(ctx)
	switch {
	case err != nil:
		c.Why = "not collected: " + errkind.Line(err)
	case len(content) == 0:
		c.Why = "not collected: it made an empty file"
	default:
		if c.Ref, err = r.Attach(j.file, content); err != nil {
			c.Ref, c.Why = "", "not kept: "+errkind.Line(err)
			return c
		}
		c.Bytes = int64(len(content))
		if j.port {
			c.Module = readModule(content)
		}
	}
	return c
}

// jobs are what is collected of a node for the parts of it that were blamed: each program
// once, but for those about a single port.
func (r *Run) jobs(n *inventory.Node, blamed []suspect) (list []job) {
	add := func(j job) {
		if !slices.ContainsFunc(list, func(o job) bool { return o.program == j.program }) {
			list = append(list, j)
		}
	}
	for _, s := range blamed {
		if s.node != n.Name {
			continue
		}
		if isPort(s.part) {
			for _, j := range r.ofPort(n, s.part) {
				add(j)
			}
			continue
		}
		if vendor := vendorOf(n); vendor != "" && isGPU(s.part) {
			add(r.ofGPUs(n.Name, vendor, s.part))
		}
		if r.bmcs != nil && n.BMC.Protocol != "" {
			add(job{part: s.part, program: "the BMC's diagnostic data", file: "bmc-diagnostics.bin", do: func(ctx context.Context) ([]byte, error) { return r.askBMC(ctx, n.Name) }})
		}
	}
	return list
}

// isPort reports whether a finding names a rail or a NIC.
func isPort(part string) bool {
	return strings.HasPrefix(part, "rail") || strings.HasPrefix(part, "NIC")
}

// isGPU reports whether a finding names a GPU, what joins them, or the node as a whole.
func isGPU(part string) bool {
	return part == "" || strings.Contains(part, "GPU") || strings.Contains(part, "NVLink") || strings.Contains(part, "NVSwitch") || strings.Contains(part, "XGMI")
}

// vendorOf is the maker of a node's GPUs; "" where it has none.
func vendorOf(n *inventory.Node) string {
	if n.Hardware == nil {
		return ""
	}
	if len(n.Hardware.GPUs) == 0 {
		return ""
	}
	return n.Hardware.GPUs[0].Vendor
}

// askBMC collects the diagnostic data of a node's BMC.
func (r *Run) askBMC(ctx context.Context, node string) ([]byte, error) {
	b, err := r.bmcs(node)
	if err != nil {
		return nil, err
	}
	d, ok := b.(chassis.Diagnostics)
	if !ok {
		return nil, errkind.New(errkind.Unsupported, "its BMC has no way to")
	}
	return d.Diagnostics(ctx, mostBytes)
}
