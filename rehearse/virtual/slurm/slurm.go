// SPDX-License-Identifier: Apache-2.0

// Package slurm is the scheduler of a virtual rack: a slurmctld that knows the
// nodes of the site, with jobs that somebody has submitted, and the programs that
// ask it: squeue and scontrol of Slurm 24.11, as far as handover/slurm calls them.
// It schedules nothing: a job runs where it was put, until it is ended.
package slurm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Job is a job that runs on some nodes.
type Job struct {
	ID, User, Name string
	Nodes          []string
}

// Controller is a slurmctld. It is safe for concurrent use and never blocks.
type Controller struct {
	mu      sync.Mutex // guards what follows
	nodes   map[string]*node
	jobs    []Job
	silent  bool
	changes []string // what was changed, in order
}

type node struct {
	addr, reason string
	drain        bool
}

// New makes a controller of nodes, by name with their addresses.
func New(nodes map[string]string) *Controller {
	c := &Controller{nodes: map[string]*node{}}
	for name, addr := range nodes {
		c.nodes[name] = &node{addr: addr}
	}
	return c
}

// Submit starts a job.
func (c *Controller) Submit(j Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs = append(c.jobs, j)
}

// End ends a job.
func (c *Controller) End(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs = slices.DeleteFunc(c.jobs, func(j Job) bool { return j.ID == id })
}

// Silence makes the controller answer no more, or again.
func (c *Controller) Silence(silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = silent
}

// Changes lists what was changed, in order: "n7 DRAIN", "n7 UNDRAIN".
func (c *Controller) Changes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.changes)
}

// Run runs one of the programs and returns its standard output.
func (c *Controller) Run(ctx context.Context, argv ...string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent {
		return nil, errkind.New(errkind.Unreachable, "%s: exit status 1: slurm_load_jobs error: Unable to contact slurm controller (connect failure)", argv[0])
	}
	var out string
	var err error
	switch line := strings.Join(argv, " "); {
	case line == "scontrol show config":
		out = config
	case line == "scontrol -o show node":
		out = c.showAll()
	case strings.HasPrefix(line, "scontrol -o show node "):
		out, err = c.show(argv[4])
	case strings.HasPrefix(line, "scontrol update NodeName="):
		err = c.update(strings.TrimPrefix(argv[2], "NodeName="), argv[3:])
	case strings.HasPrefix(line, "squeue -h -w "):
		out, err = c.queue(argv[3], argv[5])
	case strings.HasPrefix(line, "squeue -h -o "):
		out = writeJobs(c.jobs, argv[3])
	default:
		err = fmt.Errorf("unknown command: %s", line)
	}
	if err != nil {
		return []byte(out), errkind.New(errkind.Unreachable, "%s: exit status 1: %w", argv[0], err)
	}
	return []byte(out), nil
}

// config is what of `scontrol show config` is looked at, as Slurm 24.11 writes it.
const config = `Configuration data as of 2026-11-22T03:00:00
GresTypes               = gpu
SLURM_VERSION           = 24.11.5
`

func (c *Controller) showAll() string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		line, _ := c.show(name) // it is there
		out.WriteString(line)
	}
	return out.String()
}

func (c *Controller) show(name string) (string, error) {
	n, ok := c.nodes[name]
	if !ok {
		return fmt.Sprintf("Node %s not found\n", name), fmt.Errorf("node not found")
	}
	state, tail := "IDLE", ""
	if len(c.on(name)) > 0 {
		state = "ALLOCATED"
	}
	if n.drain {
		state, tail = state+"+DRAIN", fmt.Sprintf(" Reason=%s [root@2026-11-22T03:00:00]", n.reason)
	}
	return fmt.Sprintf("NodeName=%s Arch=x86_64 CoresPerSocket=56 CPUAlloc=0 CPUTot=224 NodeAddr=%s NodeHostName=%s Version=24.11.5 State=%s ThreadsPerCore=2 Partitions=gpu%s\n", name, n.addr, name, state, tail), nil
}

func (c *Controller) update(name string, words []string) error {
	n, ok := c.nodes[name]
	if !ok {
		return fmt.Errorf("slurm_update error: Invalid node name specified")
	}
	for _, w := range words {
		switch key, value, _ := strings.Cut(w, "="); {
		case key == "State" && value == "DRAIN":
			n.drain = true
			c.changes = append(c.changes, name+" DRAIN")
		case key == "State" && (value == "RESUME" || value == "UNDRAIN") && !n.drain:
			return fmt.Errorf("slurm_update error: Invalid node state specified")
		case key == "State" && (value == "RESUME" || value == "UNDRAIN"):
			n.drain, n.reason = false, ""
			c.changes = append(c.changes, name+" "+value)
		case key == "Reason":
			n.reason = value
		default:
			return fmt.Errorf("invalid option: %s", w)
		}
	}
	return nil
}

func (c *Controller) on(name string) (jobs []Job) {
	for _, j := range c.jobs {
		if slices.Contains(j.Nodes, name) {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func (c *Controller) queue(name, format string) (string, error) {
	if _, ok := c.nodes[name]; !ok {
		return "", fmt.Errorf("squeue: error: Invalid node name %s", name)
	}
	return writeJobs(c.on(name), format), nil
}

func writeJobs(jobs []Job, format string) string {
	var out strings.Builder
	for _, j := range jobs {
		out.WriteString(strings.NewReplacer("%i", j.ID, "%u", j.User, "%T", "RUNNING", "%L", "1:12:00", "%N", strings.Join(j.Nodes, ","), "%j", j.Name).Replace(format) + "\n")
	}
	return out.String()
}
