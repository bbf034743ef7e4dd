package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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
	"golang.org/x/sync/errgroup"
)

// gpuSizes are used when the site gives none: below a gibibyte an all-reduce of
// GPUs is bound by latency.
var gpuSizes = []unit.Bytes{8 << 30}

// boutsAtOnce is how many runs over disjoint sets go on side by side.
const boutsAtOnce = 32

// bouts runs all-reduces of GPUs over nodes of a group.
type bouts struct {
	nodes onnode.Nodes
	g     group
	rec   stage.Run

	mu       sync.Mutex
	programs map[string]string // where the test is, by node; guarded by mu
}

// newBouts returns the runner of a job.
func newBouts(j *Job) *bouts {
	return &bouts{nodes: j.Nodes, g: *j.Group, rec: j.Run, programs: map[string]string{}}
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

// fight runs one test over every set: those that share no node side by side.
func (c *bouts) fight(ctx context.Context, scope string, all [][]*inventory.Node) []*bout {
	var list []*bout
	for _, set := range all {
		list = append(list, &bout{scope: scope, nodes: set})
	}
	for rest := list; len(rest) > 0; {
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
	return list
}

// try runs every size over one set; the last one is what is judged.
func (c *bouts) try(ctx context.Context, b *bout) {
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
func (c *bouts) once(ctx context.Context, b *bout) (nccl.Measured, []byte, error) {
	t, err := c.describe(b)
	if err != nil {
		return nccl.Measured{}, nil, err
	}
	program, err := c.program(ctx, t.Engine, b.nodes)
	if err != nil {
		return nccl.Measured{}, nil, err
	}
	j, err := jobOver(c.rec, c.g.v.AllReduce, b.nodes)
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
func (c *bouts) describe(b *bout) (nccl.Test, error) {
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
func (c *bouts) program(ctx context.Context, e nccl.Engine, nodes []*inventory.Node) (string, error) {
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
func (c *bouts) programOn(ctx context.Context, e nccl.Engine, n *inventory.Node) (string, error) {
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

// gpuLimit is how long one run over nodes may take: initialisation grows with the
// ranks, and 25 iterations of 16 GiB take a few seconds.
func gpuLimit(nodes, gpus int) time.Duration {
	return jobLimit + time.Duration(nodes*gpus)*rankLimit/2
}

// reference attaches the output of a run, once.
func (b *bout) reference(rec stage.Run) string {
	if b.ref == "" {
		ref, err := rec.Attach("all-reduce-"+b.scope+".txt", b.text)
		if err != nil {
			return "the output could not be kept: " + err.Error()
		}
		b.ref = ref
	}
	return b.ref
}

// Scopes of the search among leaves: pairs that stay on them, and pairs that cross
// two. Both are rings over the rails, without NVLink between nodes.
const (
	onLeaf    = "leaf"
	crossLeaf = "crossing"
)

// ports are those that the GPUs of a node speak over, as its fabrics found them.
func (c *bouts) ports(n *inventory.Node) (list []fabric.Port) {
	for _, f := range gpuFabrics(n) {
		of, _ := read(c.rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
		list = append(list, of...)
	}
	return list
}

// outcome says what a run without the suspects gave.
func (b *bout) outcome() string {
	switch {
	case b == nil:
		return "too little is left to be run without them"
	case b.why != "":
		return "without it: " + b.why
	case len(b.skip) > 0:
		return fmt.Sprintf("all nodes without rail %s: %s, which is good", strings.Trim(fmt.Sprint(b.skip), "[]"), rate(b.m.BusBW))
	}
	return fmt.Sprintf("without its nodes: %s, which is good", rate(b.m.BusBW))
}
