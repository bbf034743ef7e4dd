package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/mpi"
	"github.com/ironrail/ironrail/validate/nccl"
)

// scopes are the sets of nodes that a collective of GPUs runs over, the smallest
// first: what is wrong with one node is found before it can spoil a larger run.
var scopes = []string{"node", "pair", "unit", "all"}

// gpuSizes are used when the site gives none: below a gibibyte an all-reduce of
// GPUs is bound by latency.
var gpuSizes = []unit.Bytes{8 << 30}

// boutsAtOnce is how many runs over disjoint sets go on side by side.
const boutsAtOnce = 32

// collective is one all-reduce test of GPUs, over every scope that the site asks
// for.
type collective struct {
	nodes onnode.Nodes
	g     group
	st    plan.Step
	rec   stage.Run
	list  []*inventory.Node

	mu       sync.Mutex
	programs map[string]string // where the test is, by node; guarded by mu

	usual    map[string]float64 // median bandwidth by scope; none of a scope with few runs
	suspects []string           // nodes
	findings []stage.Finding
	bouts    []*bout // all of them, in their order
	leaves   map[railOf]string
	merged   bool  // the run over all nodes is that over their one unit as well
	cut      *bout // the first one whose output could not be read whole
}

func newCollective(j *Job) *collective {
	return &collective{nodes: j.Nodes, g: *j.Group, st: j.Step, rec: j.Run, list: members(j.Inv, j.Run), programs: map[string]string{}, leaves: leavesOf(j.Inv)}
}

// bout is one run over one set of nodes.
type bout struct {
	scope string
	nodes []*inventory.Node
	again string // the node that it was run for once more; empty for a first run
	rail  int    // the one rail that it runs over, from 1; 0: all
	skip  []int  // rails that it leaves out, from 0
	size  int64
	m     nccl.Measured
	text  []byte
	named string // the one node that a failed run names
	err   error
	limit string // what it was held against
	why   string // it is bad; "" when it is good
	ref   string // its output

	explained string // what is at fault for it and is no node; "": nothing is known
}

// ring reports whether a run says what the wire carries.
func (b *bout) ring() bool { return slices.Contains([]string{"pair", onLeaf, crossLeaf}, b.scope) }

// over reports whether a run uses a rail.
func (b *bout) over(rail int) bool {
	return (b.rail == 0 || rail == b.rail-1) && !slices.Contains(b.skip, rail)
}

func (c *collective) run(ctx context.Context) error {
	err := c.rec.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", c.st.ID, c.rec.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: fmt.Sprintf("load the GPUs and rails of %d nodes with all-reduces", len(c.list)),
		Do: func(ctx context.Context) error {
			c.usual, c.suspects, c.findings, c.bouts, c.merged, c.cut = map[string]float64{}, nil, nil, nil, false, nil
			c.loaded(ctx, c.scopes)
			if c.cut != nil {
				return c.notJudged(c.cut)
			}
			return context.Cause(ctx)
		},
	})
	if err != nil {
		return err
	}
	return c.record(ctx)
}

// notJudged is a run whose output could not be read whole. It speaks against no
// node: the test has no result.
func (c *collective) notJudged(b *bout) error {
	return fmt.Errorf("the all-reduce of GPUs over %s: %w (%s)", some(names(b.nodes)), b.err, b.reference(c))
}

// scopes runs every scope that the site asks for.
func (c *collective) scopes(ctx context.Context) {
	for _, scope := range scopes {
		switch {
		case !slices.Contains(c.g.v.AllReduce.Scope, scope) || ctx.Err() != nil || c.cut != nil:
		case scope == "unit" && c.oneUnit():
			c.merged = true
			c.rec.Emit(event.Event{Type: event.Note, Text: "all nodes are in one scalable unit: the all-reduce over all of them is that of scope \"unit\" too, and runs once"})
		default:
			c.test(ctx, scope)
		}
	}
}

// oneUnit reports whether the runs of the scopes "unit" and "all" would be the same.
func (c *collective) oneUnit() bool {
	list := c.left()
	units := c.g.sets("unit", list)
	return slices.Contains(c.g.v.AllReduce.Scope, "all") && len(units) == 1 && len(units[0]) == len(list)
}

// left are the members that nothing speaks against yet.
func (c *collective) left() []*inventory.Node {
	return slices.DeleteFunc(slices.Clone(c.list), func(n *inventory.Node) bool { return slices.Contains(c.suspects, n.Name) })
}

// test runs one scope, judges it, and looks for the node that spoils a pair.
func (c *collective) test(ctx context.Context, scope string) {
	list := c.left()
	bouts := c.fight(ctx, scope, c.g.sets(scope, list))
	c.judge(bouts)
	if c.cut != nil {
		return
	}
	switch scope {
	case "node":
		for _, b := range bouts {
			if b.why != "" {
				c.suspect(b, b.nodes[0].Name, "it alone is bad")
			}
		}
	case "pair":
		c.narrow(ctx, bouts)
	default:
		for _, b := range bouts {
			if b.why != "" && !c.crossing(ctx, b) {
				c.suspectNamed(b)
			}
		}
	}
}

// fight runs one test over every set: those that share no node side by side.
func (c *collective) fight(ctx context.Context, scope string, all [][]*inventory.Node) []*bout {
	var bouts []*bout
	for _, set := range all {
		bouts = append(bouts, &bout{scope: scope, nodes: set})
	}
	for rest := bouts; len(rest) > 0; {
		var now, later []*bout
		busy := map[string]bool{}
		for _, b := range rest {
			if slices.ContainsFunc(b.nodes, func(n *inventory.Node) bool { return busy[n.Name] }) {
				later = append(later, b)
				continue
			}
			for _, n := range b.nodes {
				busy[n.Name] = true
			}
			now = append(now, b)
		}
		var g errgroup.Group
		g.SetLimit(boutsAtOnce)
		for _, b := range now {
			g.Go(func() error { c.try(ctx, b); return nil })
		}
		_ = g.Wait() // what went wrong is in the bouts
		rest = later
	}
	c.bouts = append(c.bouts, bouts...)
	if i := slices.IndexFunc(bouts, func(b *bout) bool { return errors.Is(b.err, onnode.ErrCut) }); i >= 0 && c.cut == nil {
		c.cut = bouts[i]
	}
	return bouts
}

// try runs every size over one set; the last one is what is judged.
func (c *collective) try(ctx context.Context, b *bout) {
	c.rec.Emit(event.Event{Type: event.StepProgress, Text: fmt.Sprintf("all-reduce of GPUs, scope %s: %s", b.scope, some(names(b.nodes)))})
	sizes := c.g.v.AllReduce.Sizes
	if len(sizes) == 0 {
		sizes = gpuSizes
	}
	for _, size := range sizes {
		b.size = int64(size)
		m, text, err := c.once(ctx, b)
		b.text = fmt.Appendf(b.text, "== %s, %s\n%s\n", strings.Join(names(b.nodes), ", "), size, text)
		b.m.Wrong += m.Wrong
		m.Wrong = b.m.Wrong
		b.m, b.err = m, err
		if err != nil {
			return
		}
	}
}

// once is one run of one size.
func (c *collective) once(ctx context.Context, b *bout) (nccl.Measured, []byte, error) {
	t, err := c.describe(b)
	if err != nil {
		return nccl.Measured{}, nil, err
	}
	program, err := c.program(ctx, t.Engine, b.nodes)
	if err != nil {
		return nccl.Measured{}, nil, err
	}
	a := allReduce{nodes: c.nodes, g: c.g, st: c.st, rec: c.rec, list: b.nodes}
	j, err := a.job(b.nodes)
	if err != nil {
		return nccl.Measured{}, nil, err
	}
	j.Data = j.Control // Open MPI only starts the ranks; the data go the library's way
	j.Limit = gpuLimit(len(b.nodes), t.GPUs)
	j.Program = &mpi.Program{Argv: t.Argv(program), Env: t.Env(), Ranks: t.GPUs}
	r := nccl.NewReader()
	printed, err := j.Launch(ctx, c.nodes, c.rec.Clock().Now(), r.Stdout(), r.Stderr())
	b.named = printed.Named
	if !printed.Ended {
		if why := r.Why(); why != "" {
			err = errkind.New(errkind.Mismatch, "%s", why)
		}
		return nccl.Measured{}, printed.Text, err
	}
	m, wrong := t.Judge(r)
	if wrong == nil && err != nil { // a good run that could not be cleaned up after
		c.rec.Emit(event.Event{Type: event.Note, Text: err.Error()})
	}
	return m, printed.Text, wrong
}

// describe is the test of one run, from the site and from what is known of its
// nodes' ports.
func (c *collective) describe(b *bout) (nccl.Test, error) {
	t := nccl.Test{Engine: engineOf(c.g.v.AllReduce, b.nodes[0]), Nodes: names(b.nodes), GPUs: b.nodes[0].Hardware.GPUCount(), Size: b.size, Ring: b.ring()}
	for i, n := range b.nodes {
		if n.Hardware.GPUCount() != t.GPUs {
			return t, errkind.New(errkind.Mismatch, "node %s has %d GPUs and %s has %d", b.nodes[0].Name, t.GPUs, n.Name, n.Hardware.GPUCount()).Do("Give nodes of different hardware validation blocks of their own.")
		}
		var devices []string
		gid := 0
		for _, p := range c.ports(n) {
			if b.over(p.Rail) {
				devices, gid = append(devices, p.Device), cmp.Or(gid, p.GIDIndex)
			}
		}
		switch {
		case i == 0:
			t.Devices, t.GIDIndex = devices, gid
		case !slices.Equal(devices, t.Devices) || gid != t.GIDIndex:
			return t, errkind.New(errkind.Mismatch, "the rails of %s are %s with GID index %d, and those of %s are %s with GID index %d: one setting of NCCL cannot name both",
				b.nodes[0].Name, strings.Join(t.Devices, ","), t.GIDIndex, n.Name, strings.Join(devices, ","), gid).Do("Bring the nodes to the same hardware, firmware and names of devices.")
		}
	}
	return t, nil
}

// engineOf is the engine of a test: the site's, or that of the GPUs.
func engineOf(a *inventory.CollectiveTest, n *inventory.Node) nccl.Engine {
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
func (c *collective) program(ctx context.Context, e nccl.Engine, nodes []*inventory.Node) (string, error) {
	paths, errs := make([]string, len(nodes)), make([]error, len(nodes))
	var g errgroup.Group
	g.SetLimit(lookupsAtOnce)
	for i, n := range nodes {
		g.Go(func() error { paths[i], errs[i] = c.programOn(ctx, e, n); return nil })
	}
	_ = g.Wait() // the errors are in errs
	for i, n := range nodes {
		if errs[i] != nil {
			return "", errs[i]
		}
		if paths[i] != paths[0] {
			return "", errkind.New(errkind.Mismatch, "%s is %s on node %s and %s on node %s", nccl.Program, paths[0], nodes[0].Name, paths[i], n.Name).Do("Install both with the same image.")
		}
	}
	return paths[0], nil
}

// programOn is where the test is on one node, which is asked once.
func (c *collective) programOn(ctx context.Context, e nccl.Engine, n *inventory.Node) (string, error) {
	c.mu.Lock()
	path, known := c.programs[n.Name]
	c.mu.Unlock()
	if known {
		return path, nil
	}
	out, err := onnode.Do(ctx, c.nodes, n.Name, e.Find()...)
	if exit, ok := errors.AsType[*onnode.ExitError](err); ok && exit.Output.Exit == 1 {
		return "", errkind.New(errkind.Unsupported, "node %s has no %s", n.Name, nccl.Program).
			Do(fmt.Sprintf("Put the tests of %s, built with MPI=1, into the image: into one of %s.", strings.ToUpper(string(e)), strings.Join(e.Places(), ", ")))
	} else if err != nil {
		return "", err
	}
	path = strings.TrimSpace(string(out))
	c.mu.Lock()
	c.programs[n.Name] = path
	c.mu.Unlock()
	return path, nil
}
