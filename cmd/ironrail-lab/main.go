// SPDX-License-Identifier: Apache-2.0

// Command ironrail-lab is the project's test bed: QEMU machines with real
// firmware, a real BMC each, in a network namespace of their own. It is not part
// of the product, which meets these machines only as it meets any others: over
// IPMI, DHCP, TFTP, HTTP and SSH.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/ironrail/ironrail/internal/errkind"
)

// The exit codes, as of ironrail itself.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 64
	exitInterrupted = 130
)

// defaultDir is the state folder when --dir is not given.
const defaultDir = ".ironrail-lab"

// defaultName is the network namespace when --name is not given.
const defaultName = "ironrail-lab"

// cli is what a command may use of the world.
type cli struct {
	stdout, stderr io.Writer
	getenv         func(string) string
	self           string // path of this program
}

// command is one word after ironrail-lab.
type command struct {
	name, args, does string
	run              func(ctx context.Context, c *cli, args []string) error
}

// errUsage is returned for a wrong command line, after the reason was printed.
var errUsage = errors.New("wrong usage")

func listCommands() []command {
	return []command{
		{"check", "[--all] [--install]", "prints the Debian packages that are missing; installs them as root", runCheck},
		{"up", "[--dir D] [--site S] [--machines n1,n2] [--disks F] [--memory MIB] [--name N] [--detach]", "makes the network and the machines (power off) and their BMCs (running)", runUp},
		{"down", "[--dir D] [--purge]", "ends what up started, also after a crash; --purge removes the disks too", runDown},
		{"status", "[--dir D] [--json]", "how every machine stands", runStatus},
		{"stats", "[--dir D]", "JSON: power commands, boots and bytes written to disk, by machine", runStats},
		{"console", "[--dir D] [--follow] [--raw] MACHINE", "prints what the serial port printed", runConsole},
		{"fault", "[--dir D] [--machine M] slow-rail|slow-network|slow-disk|slow-cpu|unplug|missing-nic|clear", "breaks something on purpose", runFault},
		{"disks", "[--dir D] [--file F]", "prints the disks of the machines; --file changes those of machines without power", runDisks},
		{"exec", "[--dir D] -- COMMAND...", "runs a command inside the lab's network", runExec},
		{"chassis", "SOCKET MACHINE get|set ...", "ipmi_sim's chassis program", runChassis},
		{"supervise", "--dir D", "owns the machines; started by up, inside the network", runSupervise},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: path of this program: %v\n", err)
		os.Exit(exitFailed)
	}
	c := &cli{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, self: self}
	code := c.main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// main runs one command and returns the exit code.
func (c *cli) main(ctx context.Context, args []string) int {
	if len(args) == 0 {
		c.usage()
		return exitUsage
	}
	for _, cmd := range listCommands() {
		if cmd.name == args[0] {
			return c.report(ctx, cmd.run(ctx, c, args[1:]))
		}
	}
	if args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		c.usage()
		return exitDone
	}
	fmt.Fprintf(c.stderr, "error: %q is not a command\n", args[0])
	c.usage()
	return exitUsage
}

func (c *cli) report(ctx context.Context, err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitDone
	case errors.Is(err, errUsage):
		return exitUsage
	}
	fmt.Fprintf(c.stderr, "error: %v\n", err)
	if hint := errkind.Action(err); hint != "" {
		fmt.Fprintf(c.stderr, "hint: %s\n", hint)
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return exitFailed
}

func (c *cli) usage() {
	fmt.Fprintln(c.stderr, "usage: ironrail-lab COMMAND")
	for _, cmd := range listCommands() {
		fmt.Fprintf(c.stderr, "  %-9s %s\n            %s\n", cmd.name, cmd.args, cmd.does)
	}
}

// flags returns a flag set that prints to stderr and does not exit.
func (c *cli) flags(name string) *flag.FlagSet {
	f := flag.NewFlagSet("ironrail-lab "+name, flag.ContinueOnError)
	f.SetOutput(c.stderr)
	return f
}

// parseFlags parses flags, which may stand before, between and behind the words, and
// returns the words; want is how many there must be.
func parseFlags(f *flag.FlagSet, args []string, want int) ([]string, error) {
	var words []string
	for {
		if err := f.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, errUsage
		}
		if f.NArg() == 0 {
			break
		}
		words, args = append(words, f.Arg(0)), f.Args()[1:]
	}
	if len(words) != want {
		fmt.Fprintf(f.Output(), "error: want %d words beside the flags, got %q\n", want, words)
		return nil, errUsage
	}
	return words, nil
}

// dirFlag adds --dir.
func dirFlag(f *flag.FlagSet) *string {
	return f.String("dir", defaultDir, "the lab's state folder")
}

// stateDir makes the folder's name absolute: it ends up in other programs' files.
func stateDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("state folder %s: %w", dir, err)
	}
	return abs, nil
}
