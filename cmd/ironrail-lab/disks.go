// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/supervisor"
	"github.com/ironrail/ironrail/internal/errkind"
)

// runDisks prints the disks of every machine, or changes them: as a technician
// does, while the machine has no power.
func runDisks(ctx context.Context, c *cli, args []string) error {
	f := c.flags("disks")
	dir := dirFlag(f)
	file := f.String("file", "", "take the disks from this file; what a disk holds stays with its name")
	if _, err := parseFlags(f, args, 0); err != nil {
		return err
	}
	lab, res, err := callSupervisor(ctx, *dir, supervisor.Request{Op: supervisor.OpStatus})
	if err != nil {
		return err
	}
	was, err := lab.LoadDisks()
	if err != nil {
		return err
	}
	if *file == "" {
		for _, d := range was {
			fmt.Fprintf(c.stdout, "%-9s %-10s %s %-20s %s, blocks of %d bytes\n", d.Machine, d.Name, d.PCI, d.Serial, d.Size, d.Block)
		}
		return nil
	}
	is, err := rack.LoadDisks(*file, lab.Machines)
	if err != nil {
		return err
	}
	for _, m := range res.Status.Machines {
		if (m.Power || m.Running) && !slices.Equal(rack.DisksOf(was, m.Name), rack.DisksOf(is, m.Name)) {
			return errkind.New(errkind.Refused, "machine %s has power: its disks stay where they are", m.Name).Do("switch it off first")
		}
	}
	return setDisks(lab, *file)
}

// setDisks keeps a file of disks for the machines' next start.
func setDisks(lab supervisor.Lab, file string) error {
	if _, err := rack.LoadDisks(file, lab.Machines); err != nil {
		return err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return errkind.New(errkind.Refused, "disks: %w", err).Do("name a file with --disks or --file")
	}
	return lab.SaveDisks(b)
}
