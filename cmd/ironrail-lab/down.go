// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/netlab"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/supervisor"
	"github.com/ironrail/ironrail/internal/errkind"
)

// The deadlines of down.
const (
	stopTimeout = 20 * time.Second // for the supervisor to end by itself
	downTimeout = time.Minute
)

func runDown(ctx context.Context, c *cli, args []string) error {
	f := c.flags("down")
	dir := dirFlag(f)
	name := f.String("name", defaultName, "namespace of a lab whose record is lost")
	purge := f.Bool("purge", false, "also remove disks, consoles and effects")
	if _, err := parseFlags(f, args, 0); err != nil {
		return err
	}
	abs, err := stateDir(*dir)
	if err != nil {
		return err
	}
	lab, err := supervisor.Load(abs)
	switch {
	case err == nil:
	case netlab.Exists(*name) && netlab.OwnerOf(ctx, *name) == abs: // the record is lost
		lab = supervisor.Lab{Name: *name, Dir: abs}
	case *purge && supervisor.WasLab(abs): // down already, its disks kept
		return supervisor.Lab{Dir: abs}.Forget(true)
	default:
		return err
	}
	return tearDown(ctx, c, lab, *purge)
}

// tearDown asks the supervisor to end, ends what a crashed one left, and
// removes the namespace and the record.
func tearDown(ctx context.Context, c *cli, lab supervisor.Lab, purge bool) error {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	procs, err := supervisor.LoadProcesses(lab.Dir)
	if err != nil {
		return err
	}
	_, err = supervisor.Call(ctx, lab.Socket(), supervisor.Request{Op: supervisor.OpStop})
	switch {
	case err != nil && len(procs.Alive()) > 0:
		fmt.Fprintf(c.stderr, "warning: the supervisor does not answer%s\n", describeLeftovers(ctx, lab))
	case err == nil:
		awaitLock(ctx, lab.Dir)
	}
	for name, id := range procs.Alive() {
		if err := id.End(ctx, 2*time.Second); err != nil {
			return errkind.New(errkind.Refused, "%s: %w", name, err).Do("run ironrail-lab down again")
		}
	}
	if pids, err := netlab.PIDs(ctx, lab.Name); err == nil && pids != "" {
		fmt.Fprintf(c.stderr, "warning: processes %s, not started by the lab, are still in namespace %s\n", pids, lab.Name)
	}
	if err := netlab.Down(ctx, lab.Name); err != nil {
		return err
	}
	if err := lab.Forget(purge); err != nil {
		return err
	}
	fmt.Fprintf(c.stderr, "lab %s is down\n", lab.Name)
	return nil
}

// awaitLock waits until the supervisor has let go of its folder, up to
// stopTimeout; what is still there then is ended by its process id.
func awaitLock(ctx context.Context, dir string) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if release, err := supervisor.Lock(dir); err == nil {
			release()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// describeLeftovers says what of a lab is there: "; ...", or "" for nothing.
func describeLeftovers(ctx context.Context, lab supervisor.Lab) string {
	var parts []string
	if procs, err := supervisor.LoadProcesses(lab.Dir); err == nil {
		alive := procs.Alive()
		for _, name := range slices.Sorted(maps.Keys(alive)) {
			parts = append(parts, fmt.Sprintf("%s (pid %d) runs", name, alive[name].PID))
		}
	}
	if netlab.Exists(lab.Name) && netlab.OwnerOf(ctx, lab.Name) == lab.Dir {
		parts = append(parts, "namespace "+lab.Name+" is there")
	}
	if len(parts) == 0 {
		return "; nothing of it runs any more"
	}
	return "; " + strings.Join(parts, ", ")
}
