// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/supervisor"
)

// chassisTimeout is less than the second after which ipmitool sends a command
// again, which would then be carried out twice.
const chassisTimeout = 900 * time.Millisecond

// runExec becomes the command, inside the lab's network: environment, standard
// streams and exit code are the command's own.
func runExec(_ context.Context, c *cli, args []string) error {
	f := c.flags("exec")
	dir := dirFlag(f)
	if err := f.Parse(args); err != nil {
		return errors.Join(errUsage, err)
	}
	if f.NArg() == 0 {
		fmt.Fprintln(c.stderr, "error: no command after exec --")
		return errUsage
	}
	argv, err := execArgs(*dir, f.Args())
	if err != nil {
		return err
	}
	ip, err := exec.LookPath(argv[0])
	if err != nil {
		return fmt.Errorf("exec: %w", err)
	}
	return fmt.Errorf("exec %s: %w", ip, syscall.Exec(ip, argv, os.Environ()))
}

// runChassis is called by ipmi_sim for every question and every command. It
// knows nothing: it asks the supervisor and prints the answer.
func runChassis(ctx context.Context, c *cli, args []string) error {
	if len(args) < 3 {
		fmt.Fprintln(c.stderr, "error: want SOCKET MACHINE and what ipmi_sim asks")
		return errUsage
	}
	ctx, cancel := context.WithTimeout(ctx, chassisTimeout)
	defer cancel()
	res, err := supervisor.Call(ctx, args[0], supervisor.Request{Op: supervisor.OpChassis, Machine: args[1], Args: args[2:]})
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.stdout, res.Text)
	return err
}

// runSupervise is the process behind a lab.
func runSupervise(ctx context.Context, c *cli, args []string) error {
	f := c.flags("supervise")
	dir := dirFlag(f)
	if _, err := parseFlags(f, args, 0); err != nil {
		return err
	}
	abs, err := stateDir(*dir)
	if err != nil {
		return err
	}
	return supervisor.Run(ctx, abs, slog.New(slog.NewTextHandler(c.stderr, nil)))
}
