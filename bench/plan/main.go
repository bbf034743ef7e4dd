// SPDX-License-Identifier: Apache-2.0

// Command plan measures how long a plan takes as a process, from the command to
// its answer: wall time, time on processors, memory. Beside it, OpenTofu plans as
// many resources as ironrail plans steps, on the same computer, one after another.
//
//	go run ./bench/plan -ironrail bin/ironrail -tofu PROGRAM -nodes 12500
//
// OpenTofu's resources are terraform_data, of the provider that it has built in: no
// plugin and no network takes part, its state is a local file, and each resource has
// four inputs, as a step has. Its state is written by this program, as a finished
// apply leaves it, since an apply of so many takes hours. Both are asked for a plan
// that is not saved.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/bench/donesite"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/provision"
)

// stepsOfNode is how many steps the site has for each node.
const stepsOfNode = 10

func main() {
	ironrail := flag.String("ironrail", "bin/ironrail", "the `PROGRAM` ironrail")
	tofu := flag.String("tofu", "", "the `PROGRAM` tofu; empty: ironrail is measured alone")
	nodes := flag.Int("nodes", 12500, "how many nodes the site has")
	resources := flag.Int("resources", 0, "how many resources OpenTofu plans; 0: as many as there are steps")
	limit := flag.Duration("limit", 10*time.Minute, "end a process that takes longer than this `TIME`")
	keep := flag.String("keep", "", "make sites and configurations in this `FOLDER`, and leave them there")
	only := flag.Bool("sites", false, "only make the sites of ironrail, in the folder of -keep")
	flag.Parse()
	if *resources == 0 {
		*resources = stepsOfNode * *nodes
	}
	b := bench{ironrail: *ironrail, tofu: *tofu, nodes: *nodes, resources: *resources, limit: *limit}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	act := b.run
	if *only {
		act = b.makeSites
	}
	if err := act(ctx, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

// bench is what is measured.
type bench struct {
	ironrail, tofu   string // programs; no tofu: ironrail is measured alone
	nodes, resources int
	limit            time.Duration // of each process
}

func (b bench) run(ctx context.Context, dir string) error {
	if dir == "" {
		tmp, err := os.MkdirTemp("", "bench-plan")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		dir = tmp
	}
	fmt.Printf("%-10s %9s  %-17s %9s %9s %11s\n", "program", "planned", "", "wall", "user", "memory")
	ours, err := b.sites(ctx, dir)
	if err != nil || b.tofu == "" {
		return err
	}
	theirs, err := b.configurations(ctx, dir)
	if err != nil {
		return err
	}
	for i, what := range []string{"no change", "one thing changed"} {
		us, them := ours[i+1], theirs[i]
		fmt.Printf("%-10s %9s  %-17s %8.1fx %8.1fx %10.1fx\n", "ratio", "", what, them.wall.Seconds()/us.wall.Seconds(), them.user.Seconds()/us.user.Seconds(), float64(them.memory)/float64(us.memory))
	}
	return nil
}

// sites measures ironrail on a site all of which was done, and on the same one with
// other drivers of its role. Nothing of the site exists.
//
// The sites are made by another process: the largest size of a process counts from
// its fork, at which it is as large as this one.
func (b bench) sites(ctx context.Context, dir string) (took []usage, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if _, err := b.measure(ctx, self, "-sites", "-keep", dir, "-nodes", strconv.Itoa(b.nodes), "-limit", b.limit.String()); err != nil {
		return nil, err
	}
	for _, c := range []struct{ what, dir, command string }{{"load only", "done", "check"}, {"no change", "done", "plan"}, {"one role changed", "changed", "plan"}} {
		u, err := b.measure(ctx, b.ironrail, "-C", filepath.Join(dir, c.dir), c.command)
		if err != nil {
			return nil, err
		}
		showUsage("ironrail", stepsOfNode*b.nodes, c.what, u)
		took = append(took, u)
	}
	return took, nil
}

// makeSites makes the sites in dir: done with its state and keys, and changed with the same.
func (b bench) makeSites(ctx context.Context, dir string) error {
	done, changed := filepath.Join(dir, "done"), filepath.Join(dir, "changed")
	if err := donesite.Write(done, "examples/csv-12500", b.nodes, ""); err != nil {
		return err
	}
	if err := donesite.Write(changed, "examples/csv-12500", b.nodes, `"htop", `); err != nil {
		return err
	}
	site, err := donesite.Open(done, nobody{network.OS{}})
	if err != nil {
		return err
	}
	if err := donesite.Fill(ctx, done, site); err != nil {
		return err
	}
	state := func(dir string) string { return filepath.Dir(provision.StatePath(dir)) }
	abs, err := filepath.Abs(state(done))
	if err != nil {
		return err
	}
	return os.Symlink(abs, state(changed)) // plans only read it, and the keys beside it
}

// usage is what a process has taken.
type usage struct {
	wall, user time.Duration
	memory     int64 // KiB, the largest resident size
}

// measure runs a program to its end, which is an error when it comes by the limit.
func (b bench) measure(ctx context.Context, program string, args ...string) (usage, error) {
	ctx, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second
	var errs bytes.Buffer
	cmd.Stderr = &errs // standard output is read by nobody, as with > /dev/null
	started := time.Now()
	err := cmd.Run()
	u := usage{wall: time.Since(started)}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.user, u.memory = time.Duration(r.Utime.Nano()), r.Maxrss
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return u, fmt.Errorf("%s %v did not end within %s: -limit gives it longer, -nodes makes it smaller", program, args, b.limit)
	case err != nil:
		return u, fmt.Errorf("%s %v: %w\n%s", program, args, err, errs.Bytes())
	}
	return u, nil
}

func showUsage(program string, planned int, what string, u usage) {
	fmt.Printf("%-10s %9d  %-17s %7.2f s %7.2f s %7d MiB\n", program, planned, what, u.wall.Seconds(), u.user.Seconds(), u.memory>>10)
}
