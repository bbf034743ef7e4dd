// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/netlab"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/supervisor"
	"github.com/ironrail/ironrail/internal/errkind"
)

// callTimeout bounds a question to the supervisor.
const callTimeout = 30 * time.Second

// callSupervisor loads the lab of dir and sends one request.
func callSupervisor(ctx context.Context, dir string, req supervisor.Request) (supervisor.Lab, supervisor.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	abs, err := stateDir(dir)
	if err != nil {
		return supervisor.Lab{}, supervisor.Response{}, err
	}
	lab, err := supervisor.Load(abs)
	if err != nil {
		return lab, supervisor.Response{}, err
	}
	res, err := supervisor.Call(ctx, lab.Socket(), req)
	return lab, res, err
}

func runStatus(ctx context.Context, c *cli, args []string) error {
	f := c.flags("status")
	dir := dirFlag(f)
	asJSON := f.Bool("json", false, "print JSON")
	if _, err := parseFlags(f, args, 0); err != nil {
		return err
	}
	lab, res, err := callSupervisor(ctx, *dir, supervisor.Request{Op: supervisor.OpStatus})
	if errkind.Of(err) == errkind.Unreachable {
		return errkind.New(errkind.Unreachable, "lab %s has no supervisor%s", lab.Name, describeLeftovers(ctx, lab)).Do("clean up with: ironrail-lab down --dir " + lab.Dir)
	}
	if err != nil {
		return err
	}
	if *asJSON {
		return c.json(res.Status)
	}
	c.printStatus(res.Status)
	return nil
}

func (c *cli) printStatus(st *supervisor.Status) {
	fmt.Fprintf(c.stdout, "lab %s, supervisor pid %d, state %s\n", st.Name, st.PID, st.Dir)
	for _, m := range st.Machines {
		power := "off"
		if m.Power {
			power = "on"
		}
		fmt.Fprintf(c.stdout, "%-9s %-13s bmc %s power %-3s next boot %s%s\n", m.Name, m.Hardware, m.BMC, power, m.Boot, faultText(m.Faults))
	}
}

func faultText(f supervisor.Faults) string {
	var parts []string
	if f.Unplugged {
		parts = append(parts, "boot NIC unplugged")
	}
	if f.NoRail {
		parts = append(parts, "no rail NIC from the next power on")
	}
	if f.RailRate > 0 {
		parts = append(parts, fmt.Sprintf("rail at %d kbit/s", f.RailRate))
	}
	if f.DiskRate > 0 {
		parts = append(parts, fmt.Sprintf("disks read at %d bytes/s", f.DiskRate))
	}
	if f.CPUShare > 0 {
		parts = append(parts, fmt.Sprintf("%d%% of a CPU", f.CPUShare))
	}
	if len(parts) == 0 {
		return ""
	}
	return " FAULTS: " + strings.Join(parts, ", ")
}

func runStats(ctx context.Context, c *cli, args []string) error {
	f := c.flags("stats")
	dir := dirFlag(f)
	if _, err := parseFlags(f, args, 0); err != nil {
		return err
	}
	_, res, err := callSupervisor(ctx, *dir, supervisor.Request{Op: supervisor.OpStats})
	if err != nil {
		return err
	}
	return c.json(res.Stats)
}

func (c *cli) json(v any) error {
	e := json.NewEncoder(c.stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func runFault(ctx context.Context, c *cli, args []string) error {
	f := c.flags("fault")
	dir := dirFlag(f)
	machine := f.String("machine", "", "the machine; clear without it clears all")
	factor := f.Int("factor", 10, "slow-rail: so many times slower than a rail under emulation")
	rate := f.String("rate", "", "slow-rail: a rate such as 8mbit, instead of --factor")
	words, err := parseFlags(f, args, 1)
	if err != nil {
		return err
	}
	req := supervisor.FaultRequest{Name: words[0], Machine: *machine}
	if req.Name == "slow-rail" {
		if req, err = supervisor.SlowRail(rack.Machine{Name: *machine}, *factor, *rate); err != nil {
			return err
		}
	}
	_, _, err = callSupervisor(ctx, *dir, supervisor.Request{Op: supervisor.OpFault, Fault: &req})
	return err
}

// execArgs returns the argument vector of exec.
func execArgs(dir string, command []string) ([]string, error) {
	abs, err := stateDir(dir)
	if err != nil {
		return nil, err
	}
	lab, err := supervisor.Load(abs)
	if err != nil {
		return nil, err
	}
	return netlab.ExecArgs(lab.Name, command...), nil
}
