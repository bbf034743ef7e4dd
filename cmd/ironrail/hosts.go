// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/hosts"
)

// hostFlags are the flags of the command.
type hostFlags struct {
	list, expect           string
	key, user, known, jump string
	acceptNew, sudo, load  bool
	writeExpect            bool
	evidence, format       string
	names                  []string // of the flags that go with --hosts alone
	write                  func(io.Writer, report.Input) error
}

const testHelp = `With NODE, named as for plan --target: test accepted nodes of the site again, as
they are. The plan is shown and asked about. Each node is drained at its scheduler,
looked at, loaded and measured by the tests that it was accepted by, against the
others that are named, and handed back when it passes; who fails is taken out, with
the part. Nothing is installed or set, and no other node is loaded. A node under
running jobs is not touched: see rebuild on --drain-wait and --jobs-unknown. This
finds what begins on nodes in service and shows under load alone.

With --hosts: test nodes that MAAS, Warewulf, a script or a hand installed, over
SSH: with no site, no state, and nothing that remains on a node. The file names the
nodes, one a line, with # comments:

  gpu01                     # port 22, the user of --user
  admin@10.0.0.11:2222 gpu02    # another user and port; "gpu02" in the report

Each node is looked at as the nodes of a site are: GPUs and their memory, NVLinks,
PCIe links, RDMA ports, disks, memory, clock and kernel log. What it is made of is
compared with what most of the nodes have, and so are firmware, settings, drivers
and kernel; with --expect FILE, with the hardware block in that file, which
--write-expect prints from the majority. Nothing is loaded on a node, but with
--load: memory, CPUs and disks are measured (disks are only read), bandwidths of
GPUs, and RDMA writes between nodes over every rail, where the programs are there.
Nodes whose GPUs somebody uses are left alone.

  accepted       nothing was found, and there is something to compare with
  not accepted   with the part, what was seen, and what to do
  no reference   nothing was found, and fewer than three nodes are alike

Host keys are those of known_hosts. New ones are shown, and asked about once, all
together; without a terminal they are refused, unless --accept-new-host-keys says
otherwise. A key that is not the known one is always refused.

ironrail's agent runs from a folder in /dev/shm, /tmp or /var/tmp, which the node
removes when the connection ends, also when it breaks. A user other than root sees
less; with --sudo, commands run by "sudo -n".

Exit codes: 0 all nodes are accepted, 3 some are not or have no reference, 1
nothing could be tested.`

func (a *app) testCommand() *cobra.Command {
	f, again := hostFlags{format: "text"}, retestFlags{}
	c := &cobra.Command{
		Use:   "test NODE... | --hosts FILE",
		Short: "Test nodes again, or nodes that another tool installed",
		Long:  testHelp,
		Example: `  ironrail test r01-u09
  ironrail test rack.r01 --drain-wait 2h
  ironrail test --hosts nodes.txt
  ironrail test --hosts nodes.txt --user ubuntu --sudo --key ~/.ssh/cluster
  ironrail test --hosts nodes.txt --write-expect > expect.hcl
  ironrail test --hosts two-new.txt --expect expect.hcl --json
  ironrail test --hosts nodes.txt --load --evidence out`,
		Args:              asUsage(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeWords,
		RunE: func(c *cobra.Command, args []string) error {
			if err := again.check(c, args, &f); err != nil {
				return err
			}
			if len(args) > 0 {
				return a.testNodes(c.Context(), args, again)
			}
			if err := f.check(c, a.json); err != nil {
				return err
			}
			return a.interruptible(c.Context(), func(ctx context.Context) error { return a.testHosts(ctx, f) })
		},
	}
	f.define(c)
	again.define(c)
	return c
}

// define gives a command the flags.
func (f *hostFlags) define(c *cobra.Command) {
	c.Flags().StringVar(&f.list, "hosts", "", "file that names the nodes, one a line; - is standard input")
	c.Flags().StringVar(&f.expect, "expect", "", "file with the hardware block that the nodes are held against")
	c.Flags().BoolVar(&f.writeExpect, "write-expect", false, "print such a block from what most nodes have, and test nothing")
	c.Flags().BoolVar(&f.load, "load", false, "measure too: hosts, bandwidths of GPUs, and RDMA between nodes; idle nodes only")
	c.Flags().StringVar(&f.user, "user", "", "user of nodes without one in the file; root if not given")
	c.Flags().StringVar(&f.key, "key", "", "private key; if not given, ssh-agent's or those of ~/.ssh")
	c.Flags().StringVar(&f.jump, "jump", "", "[USER@]HOST[:PORT] that the nodes are reached through")
	c.Flags().BoolVar(&f.sudo, "sudo", false, "run commands by sudo -n where the user is not root")
	c.Flags().StringVar(&f.known, "known-hosts", "", "file of known host keys, in place of ~/.ssh/known_hosts")
	c.Flags().BoolVar(&f.acceptNew, "accept-new-host-keys", false, "believe host keys that are in no file, and add them")
	c.Flags().StringVar(&f.evidence, "evidence", "", "folder to keep in what the programs of nodes printed")
	c.Flags().StringVar(&f.format, "format", f.format, "text, json, html or junit")
	f.names = []string{"expect", "write-expect", "load", "user", "key", "jump", "sudo", "known-hosts", "accept-new-host-keys", "evidence", "format"}
}

// check refuses flags that contradict each other.
func (f *hostFlags) check(c *cobra.Command, json bool) error {
	f.write = reportForms[f.format]
	switch {
	case f.writeExpect && f.expect != "":
		return wrongUsage(c, errors.New("--write-expect prints what --expect reads: give one of them"))
	case f.write == nil:
		return wrongUsage(c, fmt.Errorf("--format is text, json, html or junit, not %q", f.format))
	case json && c.Flags().Changed("format") && f.format != "json":
		return wrongUsage(c, fmt.Errorf("--json and --format %s are two forms", f.format))
	case f.load && f.writeExpect:
		return wrongUsage(c, errors.New("--write-expect tests nothing, so that there is nothing to --load"))
	case json && f.writeExpect:
		return wrongUsage(c, errors.New("--write-expect prints a block of the language, not JSON"))
	case json:
		f.write = report.JSON
	}
	return nil
}

// testHosts tests the hosts of a list, or prints what most of them have.
func (a *app) testHosts(ctx context.Context, f hostFlags) error {
	o, err := a.hostOptions(f)
	if err != nil {
		return err
	}
	if f.writeExpect {
		text, err := hosts.WriteExpect(ctx, o)
		if err == nil {
			_, err = a.out.Write(text)
		}
		return err
	}
	in, err := hosts.Test(ctx, o)
	if err != nil {
		return err
	}
	if err := f.write(a.out, in); err != nil {
		return err
	}
	for _, n := range in.Nodes {
		if n.Status != report.Accepted {
			return exit{code: exitSomeFailed}
		}
	}
	return nil
}

// hostOptions reads the files that the flags name.
func (a *app) hostOptions(f hostFlags) (o hosts.Options, err error) {
	o = hosts.Options{Load: f.load, Text: hosts.Text{File: f.list, Version: thisVersion(), Evidence: f.evidence}, Now: a.now, Say: func(text string) { a.sayf("%s", text) }}
	o.Watch = func(p *plan.Plan, events *event.Subscription) {
		v := newView(a, p)
		v.stops = "Ctrl-C stops"
		v.follow(events)
	}
	if o.Login, err = a.hostLogin(f); err != nil {
		return o, err
	}
	if o.Agent, err = agentProgram(); err != nil {
		return o, err
	}
	list, err := a.readLimited(f.list, hosts.MaxList)
	if err != nil {
		return o, err
	}
	found, diags := hosts.ParseList(f.list, list)
	if len(diags) > 0 {
		a.showDiagnostics(diags, map[string][]byte{f.list: list})
		return o, exit{code: exitFailed, err: errors.New("no node was tested: the list of nodes has errors")}
	}
	o.List = found
	if f.expect == "" {
		return o, nil
	}
	text, err := a.readLimited(f.expect, hosts.MaxExpect)
	if err != nil {
		return o, err
	}
	expected, wrong, files := hosts.ParseExpect(filepath.Base(f.expect), text, f.load, a.now())
	if len(wrong) > 0 {
		a.showDiagnostics(wrong, files)
		return o, exit{code: exitFailed, err: errors.New("no node was tested: the file of expectations has errors")}
	}
	o.Expected = expected
	return o, nil
}

// readLimited reads a file, or standard input.
func (a *app) readLimited(name string, most int64) ([]byte, error) {
	from := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(b)) > most {
		err = errkind.New(errkind.Invalid, "%s has more than %d bytes", name, most)
	}
	return b, err
}

// hostLogin is how the nodes are logged in to.
func (a *app) hostLogin(f hostFlags) (hosts.Login, error) {
	l := hosts.Login{User: textOr(f.user, "root"), KeyFile: f.key, Sudo: f.sudo}
	l.Agent, _ = a.environ("SSH_AUTH_SOCK")
	l.Home, _ = a.environ("HOME")
	if l.Home == "" {
		if u, err := user.Current(); err == nil {
			l.Home = u.HomeDir
		}
	}
	l.KnownHosts = []string{filepath.Join(l.Home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"}
	if f.known != "" {
		l.KnownHosts = []string{f.known}
	}
	if f.jump != "" {
		jump, diags := hosts.ParseList("--jump", []byte(f.jump))
		if len(diags) > 0 || len(jump) != 1 {
			return l, usageOf("ironrail test", fmt.Errorf("--jump is [USER@]HOST[:PORT], not %q", f.jump))
		}
		l.Jump = &jump[0]
	}
	if isTerminal(a.in) && f.list != "-" {
		l.Passphrase = a.askPassphrase
		l.Confirm = a.confirmHostKeys
	}
	if f.acceptNew {
		l.Confirm = func(_ context.Context, unknown []hosts.UnknownKey) (bool, error) {
			a.showHostKeys("Believed, as --accept-new-host-keys says:", unknown)
			return true, nil
		}
	}
	return l, nil
}

// askPassphrase asks for the passphrase of a key, without an echo.
func (a *app) askPassphrase(ctx context.Context, file string) ([]byte, error) {
	terminal := int(a.in.(*os.File).Fd())
	before, err := term.GetState(terminal)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(a.err, "Passphrase of %s: ", file)
	secret, err := answerOf(ctx, func() ([]byte, error) { return term.ReadPassword(terminal) })
	fmt.Fprintln(a.err)
	if err != nil {
		_ = term.Restore(terminal, before) // it is still being read: the echo is off
	}
	return secret, err
}

// answerOf is what f reads from a terminal, unless Ctrl-C comes first. What then still
// reads ends with the program.
func answerOf[T any](ctx context.Context, f func() (T, error)) (answer T, err error) {
	type read struct {
		answer T
		err    error
	}
	done := make(chan read, 1)
	go func() {
		answer, err := f()
		done <- read{answer, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return answer, errkind.New(errkind.Interrupted, "interrupted: %w", context.Cause(ctx))
	}
}

// showHostKeys lists host keys.
func (a *app) showHostKeys(head string, unknown []hosts.UnknownKey) {
	a.sayf("%s", head)
	for _, u := range unknown {
		a.sayf("  %-20s %s", u.Host.Name, u.Fingerprint())
	}
}

// confirmHostKeys shows all new host keys and asks once.
func (a *app) confirmHostKeys(ctx context.Context, unknown []hosts.UnknownKey) (bool, error) {
	a.showHostKeys("Host keys that are not known yet:", unknown)
	fmt.Fprintf(a.err, "\nCompare them with the nodes' own. Type \"yes\" to believe %s: ", pluralOf(len(unknown), "it", fmt.Sprintf("all %d", len(unknown))))
	line, err := answerOf(ctx, func() (string, error) { return bufio.NewReader(a.in).ReadString('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return strings.TrimSpace(line) == "yes", nil
}
