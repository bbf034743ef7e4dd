// SPDX-License-Identifier: Apache-2.0

// Package grouprun runs all-reduces over sets of nodes: it describes the job, finds the
// program and returns what was measured. It judges nothing.
package grouprun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/mpi"
	"github.com/ironrail/ironrail/validate/nccl"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// gpuSizes are used when the site gives none: below a gibibyte an all-reduce of
// GPUs is bound by latency.
var gpuSizes = []unit.Bytes{8 << 30}

// AtOnce is how many runs over disjoint sets go on side by side.
const AtOnce = 32

// Runner runs all-reduces of GPUs over nodes of a group.
type Runner struct {
	Nodes onnode.Nodes
	Group target.Group
	Rec   stage.Run

	mu       sync.Mutex
	programs map[programOn]string // where the test is; guarded by mu
}

// NewRunner returns the runner of a job.
func NewRunner(j *target.Job) *Runner {
	return &Runner{Nodes: j.Nodes, Group: *j.Group, Rec: j.Run, programs: map[programOn]string{}}
}

// programOn is an operation on a node.
type programOn struct{ node, operation string }

// Run is one run over one set of nodes.
type Run struct {
	Scope string
	Does  string // the operation, of inventory.Operations; empty: the all-reduce
	Nodes []*inventory.Node
	Again string // the node that it was run for once more; empty for a first run
	Rail  int    // the one rail that it runs over, from 1; 0: all
	Skip  []int  // rails that it leaves out, from 0
	Size  int64
	Got   nccl.Measured
	text  []byte
	Named string // the one node that a failed run names
	Err   error
	Limit string // what it was held against
	Why   string // it is bad; "" when it is good
	ref   string // its output

	Alone   bool // it was slow beside others, and its figures are of a second time, alone
	Crowded bool // it was slow beside others, and those like it were good alone

	Explained string // what is at fault for it and is no node; "": nothing is known
}

// Ring reports whether a run says what the wire carries.
func (b *Run) Ring() bool { return slices.Contains([]string{"pair", OnLeaf, CrossLeaf}, b.Scope) }

// Operation is what a run does, by the name of its program.
func (b *Run) Operation() string { return cmp.Or(b.Does, nccl.AllReduce) }

// Title is what a run is called in sentences, such as "all-reduce of GPUs".
func (b *Run) Title() string {
	if b.Does == "" {
		return "all-reduce of GPUs"
	}
	return b.Does + " of GPUs"
}

// over reports whether a run uses a rail.
func (b *Run) over(rail int) bool {
	return (b.Rail == 0 || rail == b.Rail-1) && !slices.Contains(b.Skip, rail)
}

// RunAll does runs: those that share no node side by side.
func (c *Runner) RunAll(ctx context.Context, list []*Run) {
	for rest := list; len(rest) > 0; {
		var now, later []*Run
		busy := map[string]bool{}
		for _, b := range rest {
			if slices.ContainsFunc(b.Nodes, func(n *inventory.Node) bool { return busy[n.Name] }) {
				later = append(later, b)
				continue
			}
			for _, n := range b.Nodes {
				busy[n.Name] = true
			}
			now = append(now, b)
		}
		var g errgroup.Group
		g.SetLimit(AtOnce)
		for _, b := range now {
			g.Go(func() error { c.Try(ctx, b); return nil })
		}
		_ = g.Wait() // what went wrong is in the runs
		rest = later
	}
}

// Try runs every size over one set; the last one is what is judged.
func (c *Runner) Try(ctx context.Context, b *Run) {
	c.Rec.Emit(event.Event{Type: event.StepProgress, Text: fmt.Sprintf("%s, scope %s: %s", b.Title(), b.Scope, result.NameSome(target.NodeNames(b.Nodes)))})
	sizes := c.Group.Validation.AllReduce.Sizes
	if len(sizes) == 0 {
		sizes = gpuSizes
	}
	for _, size := range sizes {
		b.Size = int64(size)
		m, text, err := c.once(ctx, b)
		b.text = fmt.Appendf(b.text, "== %s, %s\n%s\n", strings.Join(target.NodeNames(b.Nodes), ", "), size, text)
		b.Got.Wrong += m.Wrong
		m.Wrong = b.Got.Wrong
		b.Got, b.Err = m, err
		if err != nil {
			return
		}
	}
}

// once is one run of one size.
func (c *Runner) once(ctx context.Context, b *Run) (nccl.Measured, []byte, error) {
	t, err := c.describe(b)
	if err != nil {
		return nccl.Measured{}, nil, err
	}
	program, err := c.program(ctx, t, b.Nodes)
	if err != nil {
		return nccl.Measured{}, nil, err
	}
	j, err := JobOver(c.Rec, c.Group.Validation.AllReduce, b.Nodes)
	if err != nil {
		return nccl.Measured{}, nil, err
	}
	j.Data = j.Control // Open MPI only starts the ranks; the data go the library's way
	j.Limit = GPULimit(len(b.Nodes), t.GPUs)
	j.Program = &mpi.Program{Argv: t.Argv(program), Env: t.Env(), Ranks: t.GPUs}
	r := nccl.NewReader()
	printed, err := j.Launch(ctx, c.Nodes, c.Rec.Clock().Now(), r.Stdout(), r.Stderr())
	b.Named = printed.Named
	if !printed.Ended {
		if why := r.Why(); why != "" {
			err = errkind.New(errkind.Mismatch, "%s", why)
		}
		return nccl.Measured{}, printed.Text, err
	}
	m, wrong := t.Judge(r)
	if wrong == nil && err != nil { // a good run that could not be cleaned up after
		c.Rec.Emit(event.Event{Type: event.Note, Text: err.Error()})
	}
	return m, printed.Text, wrong
}

// describe is the test of one run, from the site and from what is known of its
// nodes' ports.
func (c *Runner) describe(b *Run) (nccl.Test, error) {
	t := nccl.Test{Does: b.Operation(), Engine: EngineOf(c.Group.Validation.AllReduce, b.Nodes[0]), Nodes: target.NodeNames(b.Nodes), GPUs: b.Nodes[0].Hardware.GPUCount(), Size: b.Size, Ring: b.Ring(), Domain: b.Scope == Domain}
	t.Rails = t.Engine == nccl.NCCL && !t.Domain && slices.ContainsFunc(b.Nodes, func(n *inventory.Node) bool { return n.Domain != "" })
	for i, n := range b.Nodes {
		if n.Hardware.GPUCount() != t.GPUs {
			return t, errkind.New(errkind.Conflict, "node %s has %d GPUs and %s has %d", b.Nodes[0].Name, t.GPUs, n.Name, n.Hardware.GPUCount()).Do("Give nodes of different hardware validation blocks of their own.")
		}
		var devices []string
		gid := 0
		for _, p := range c.Ports(n) {
			if b.over(p.Rail) {
				devices, gid = append(devices, p.Device), cmp.Or(gid, p.GIDIndex)
			}
		}
		switch {
		case i == 0:
			t.Devices, t.GIDIndex = devices, gid
		case !slices.Equal(devices, t.Devices) || gid != t.GIDIndex:
			return t, errkind.New(errkind.Conflict, "the rails of %s are %s with GID index %d, and those of %s are %s with GID index %d: one setting of NCCL cannot name both",
				b.Nodes[0].Name, strings.Join(t.Devices, ","), t.GIDIndex, n.Name, strings.Join(devices, ","), gid).Do("Bring the nodes to the same hardware, firmware and names of devices.")
		}
	}
	return t, nil
}

// EngineOf is the engine of a test: the site's, or that of the GPUs.
func EngineOf(a *inventory.CollectiveTest, n *inventory.Node) nccl.Engine {
	if a.Engine != "" {
		return nccl.Engine(a.Engine)
	}
	for _, g := range n.Hardware.GPUs {
		if g.Vendor == "amd" {
			return nccl.RCCL
		}
	}
	return nccl.NCCL
}

// lookupsAtOnce is how many nodes are asked for the program side by side.
const lookupsAtOnce = 64

// program is where the test is on all of the nodes.
func (c *Runner) program(ctx context.Context, t nccl.Test, nodes []*inventory.Node) (string, error) {
	paths, errs := make([]string, len(nodes)), make([]error, len(nodes))
	var g errgroup.Group
	g.SetLimit(lookupsAtOnce)
	for i, n := range nodes {
		g.Go(func() error { paths[i], errs[i] = c.programOn(ctx, t, n); return nil })
	}
	_ = g.Wait() // the errors are in errs
	for i, n := range nodes {
		if errs[i] != nil {
			return "", errs[i]
		}
		if paths[i] != paths[0] {
			return "", errkind.New(errkind.Conflict, "%s is %s on node %s and %s on node %s", nccl.ProgramOf(t.Does), paths[0], nodes[0].Name, paths[i], n.Name).Do("Install both with the same image.")
		}
	}
	return paths[0], nil
}

// programOn is where the test is on one node, which is asked once.
func (c *Runner) programOn(ctx context.Context, t nccl.Test, n *inventory.Node) (string, error) {
	key := programOn{n.Name, t.Does}
	c.mu.Lock()
	path, known := c.programs[key]
	c.mu.Unlock()
	if known {
		return path, nil
	}
	out, err := onnode.Do(ctx, c.Nodes, n.Name, t.Engine.Find(t.Does)...)
	if exit, ok := errors.AsType[*onnode.ExitError](err); ok && exit.Output.Exit == 1 {
		return "", errkind.New(errkind.Unsupported, "node %s has no %s", n.Name, nccl.ProgramOf(t.Does)).
			Do(fmt.Sprintf("Put the tests of %s, built with MPI=1, into the image: into one of %s.", strings.ToUpper(string(t.Engine)), strings.Join(t.Engine.Places(), ", ")))
	} else if err != nil {
		return "", err
	}
	path = strings.TrimSpace(string(out))
	c.mu.Lock()
	c.programs[key] = path
	c.mu.Unlock()
	return path, nil
}

// GPULimit is how long one run over nodes may take: initialisation grows with the
// ranks, and 25 iterations of 16 GiB take a few seconds.
func GPULimit(nodes, gpus int) time.Duration {
	return jobLimit + time.Duration(nodes*gpus)*rankLimit/2
}

// Reference attaches the output of a run, once.
func (b *Run) Reference(rec stage.Run) string {
	if b.ref == "" {
		ref, err := rec.Attach(strings.ReplaceAll(b.Operation(), "_", "-")+"-"+b.Scope+".txt", b.text)
		if err != nil {
			return "the output could not be kept: " + err.Error()
		}
		b.ref = ref
	}
	return b.ref
}

// Domain is the scope of NVLink domains that span nodes: the only one that runs over their
// NVLink. The others test the rails, and a library that takes NVLink by itself would leave
// these idle.
const Domain = "domain"

// Scopes of the search among leaves: pairs that stay on them, and pairs that cross
// two. Both are rings over the rails, without NVLink between nodes.
const (
	OnLeaf    = "leaf"
	CrossLeaf = "crossing"
)

// Ports are those that the GPUs of a node speak over, as its fabrics found them.
func (c *Runner) Ports(n *inventory.Node) (list []fabric.Port) {
	for _, f := range rail.GPUFabrics(n) {
		of, _ := target.ReadFact(c.Rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
		list = append(list, of...)
	}
	return list
}

// Outcome says what a run without the suspects gave.
func (b *Run) Outcome() string {
	switch {
	case b == nil:
		return "too little is left to be run without them"
	case b.Why != "":
		return "without it: " + b.Why
	case len(b.Skip) > 0:
		return fmt.Sprintf("all nodes without rail %s: %s, which is good", strings.Trim(fmt.Sprint(b.Skip), "[]"), result.FormatRate(b.Got.BusBW))
	}
	return fmt.Sprintf("without its nodes: %s, which is good", result.FormatRate(b.Got.BusBW))
}
