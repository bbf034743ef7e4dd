// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/ipmisim"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/netlab"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/qemu"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/supervisor"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
)

// upTimeout bounds the start up to the moment when every BMC answers.
const upTimeout = time.Minute

// upOptions are the flags of up.
type upOptions struct {
	dir, site, machines, disks, name, passwordEnv string
	memory                                        int
	detach                                        bool
}

func runUp(ctx context.Context, c *cli, args []string) error {
	var o upOptions
	f := c.flags("up")
	f.StringVar(&o.dir, "dir", defaultDir, "the lab's state folder")
	f.StringVar(&o.site, "site", "examples/lab", "folder with machines.csv")
	f.StringVar(&o.machines, "machines", "", "names, with commas; also of machines-*.csv (default: all of machines.csv)")
	f.StringVar(&o.disks, "disks", "", "file of disks, CSV of machine,name,pci,serial,size,block (default: one disk a machine)")
	f.IntVar(&o.memory, "memory", rack.DefaultMemory, "MiB of memory of each machine")
	f.StringVar(&o.name, "name", defaultName, "network namespace")
	f.StringVar(&o.passwordEnv, "bmc-password-env", "LAB_BMC_PASSWORD", "environment variable with the BMC password")
	f.BoolVar(&o.detach, "detach", false, "return when the lab is up; end it with down")
	if _, err := parseFlags(f, args, 0); err != nil {
		return err
	}
	lab, err := c.prepare(ctx, o)
	if err != nil {
		return err
	}
	if err := c.start(ctx, lab); err != nil {
		return errors.Join(err, tearDown(context.WithoutCancel(ctx), c, lab, false))
	}
	fmt.Fprintf(c.stderr, "lab %s is up: %d machines, power off; state in %s\n", lab.Name, len(lab.Machines), lab.Dir)
	if o.detach {
		return nil
	}
	fmt.Fprintln(c.stderr, "Ctrl-C ends it")
	<-ctx.Done()
	return tearDown(context.WithoutCancel(ctx), c, lab, false)
}

// prepare checks everything that can be checked, then writes the lab's files.
// Nothing runs yet.
func (c *cli) prepare(ctx context.Context, o upOptions) (supervisor.Lab, error) {
	lab := supervisor.Lab{Name: o.name}
	if os.Geteuid() != 0 {
		return lab, errkind.New(errkind.Refused, "up needs root: it makes a network namespace").Do("run it as root")
	}
	if err := needPrograms("ip", "tc", "nice", ipmisim.Program); err != nil {
		return lab, err
	}
	if !ipmisim.IsPlain(o.name) || strings.Contains(o.name, "/") {
		return lab, errkind.New(errkind.Refused, "namespace %q: want letters, digits and . _ + -", o.name)
	}
	var names []string
	if o.machines != "" {
		names = strings.Split(o.machines, ",")
	}
	var err error
	if lab.Machines, err = rack.Load(o.site, names); err != nil {
		return lab, err
	}
	if o.memory < rack.DefaultMemory {
		return lab, errkind.New(errkind.Refused, "--memory %d: machines have %d MiB at least", o.memory, rack.DefaultMemory)
	}
	for i, m := range lab.Machines {
		lab.Machines[i].Memory = o.memory
		if err := needPrograms(qemu.Program(m.Hardware)); err != nil {
			return lab, err
		}
	}
	if lab.Dir, err = stateDir(o.dir); err != nil {
		return lab, err
	}
	if !ipmisim.IsPlain(lab.Dir) {
		return lab, errkind.New(errkind.Refused, "state folder %q has characters that QEMU and ipmi_sim cannot take", lab.Dir).Do("choose a --dir of letters, digits and . _ + -")
	}
	if err := c.noLeftovers(ctx, lab); err != nil {
		return lab, err
	}
	if err := c.writeFiles(lab, secret.NewValue(c.getenv(o.passwordEnv))); err != nil || o.disks == "" {
		return lab, err
	}
	return lab, setDisks(lab, o.disks)
}

// needPrograms reports the first program that is not installed.
func needPrograms(names ...string) error {
	for _, p := range names {
		if _, err := exec.LookPath(p); err != nil {
			return errkind.New(errkind.Unsupported, "the lab needs %w", err).Do("run ironrail-lab check --install")
		}
	}
	return nil
}

// noLeftovers refuses to start over an older lab, and says what is left of it.
func (c *cli) noLeftovers(ctx context.Context, lab supervisor.Lab) error {
	if old, err := supervisor.Load(lab.Dir); err == nil {
		return errkind.New(errkind.Refused, "state folder %s holds lab %s already%s", lab.Dir, old.Name, describeLeftovers(ctx, old)).
			Do("end it with: ironrail-lab down --dir " + lab.Dir)
	}
	if netlab.Exists(lab.Name) {
		owner := netlab.OwnerOf(ctx, lab.Name)
		if owner == "" {
			return errkind.New(errkind.Refused, "namespace %s exists and was not made by a lab", lab.Name).Do("use another --name")
		}
		return errkind.New(errkind.Refused, "namespace %s belongs to the lab in %s", lab.Name, owner).
			Do("end that one with: ironrail-lab down --dir " + owner + ", or use another --name")
	}
	return nil
}

// writeFiles writes the BMCs' files, the only place of the password, and the
// record of the lab.
func (c *cli) writeFiles(lab supervisor.Lab, password secret.Value) error {
	if err := os.MkdirAll(lab.Dir, 0o700); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	for i, m := range lab.Machines {
		bmc := ipmisim.BMC{
			Machine: m, Password: password, SOLPort: supervisor.SOLPort(i),
			Chassis: []string{c.self, "chassis", lab.Socket(), m.Name},
		}
		if err := bmc.Write(ipmisim.FilesIn(lab.FilesOf(m.Name).Dir)); err != nil {
			return err
		}
	}
	return lab.Save()
}

// start makes the network, starts the supervisor in it, and waits until every
// BMC answers.
func (c *cli) start(ctx context.Context, lab supervisor.Lab) error {
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	if err := netlab.Up(ctx, lab.Name, lab.Dir, lab.Machines); err != nil {
		return err
	}
	exited, err := c.spawn(lab)
	if err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		res, err := supervisor.Call(ctx, lab.Socket(), supervisor.Request{Op: supervisor.OpStatus})
		if err == nil && res.Status != nil && res.Status.Ready {
			return nil
		}
		select {
		case err := <-exited:
			return errkind.New(errkind.Internal, "supervisor ended: %w", err).Do("read " + lab.LogFile())
		case <-ctx.Done():
			return errkind.New(errkind.Timeout, "supervisor not ready: %w", ctx.Err()).Do("read " + lab.LogFile())
		case <-tick.C:
		}
	}
}

// spawn starts the supervisor in a session of its own and without the password
// in its environment. The channel gets its end.
func (c *cli) spawn(lab supervisor.Lab) (<-chan error, error) {
	log, err := os.OpenFile(lab.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("supervisor: log: %w", err)
	}
	defer log.Close()
	args := netlab.ExecArgs(lab.Name, c.self, "supervise", "--dir", lab.Dir)
	cmd := exec.Command("nice", append([]string{"-n", "-" + supervisor.Niceness}, args...)...)
	cmd.Env = childEnv(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("supervisor: %w", err)
	}
	exited := make(chan error, 1)
	go func() {
		if err := cmd.Wait(); err != nil {
			exited <- err
			return
		}
		exited <- errors.New("without an error")
	}()
	return exited, nil
}

// childEnv drops every variable that looks like a secret.
func childEnv(env []string) []string {
	var out []string
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if !strings.Contains(name, "PASSWORD") && !strings.Contains(name, "SECRET") && !strings.Contains(name, "TOKEN") {
			out = append(out, e)
		}
	}
	return out
}
