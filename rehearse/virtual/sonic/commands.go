// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/system/shell"
)

// How long commands take (an assumption: sonic-cfggen loads its templates for a
// second or two, and the config updater loads every YANG model first).
const (
	readTime  = 2 * time.Second
	loadTime  = 8 * time.Second
	perChange = 20 * time.Millisecond
)

// call is one run of a program.
type call struct {
	shell.Command
	s    *Switch
	root bool
}

// findProgram returns what a name stands for; nil: there is none.
func findProgram(name string) func(context.Context, call) int {
	switch name {
	case "sudo":
		return runSudo
	case "sonic-cfggen":
		return runCfggen
	case "show":
		return runShow
	case "config":
		return runConfig
	case "cat":
		return runCat
	case "tee":
		return runTee
	case "rm":
		return runRm
	case "printf":
		return runPrintf
	case "sh", "/bin/sh":
		return runShell
	case "true", "kill": // what runs ends with its connection
		return func(context.Context, call) int { return 0 }
	}
	return nil
}

// system is a switch as a shell sees it; it implements shell.System.
type system struct {
	s    *Switch
	root bool
	pid  int
}

// Run implements shell.System.
func (y system) Run(ctx context.Context, c shell.Command) int {
	if ctx.Err() != nil {
		return 137
	}
	run := findProgram(c.Argv[0])
	if run == nil {
		_, _ = fmt.Fprintf(c.Err, "-bash: %s: command not found\n", c.Argv[0])
		return 127
	}
	return run(ctx, call{c, y.s, y.root})
}

// Open implements shell.System.
func (y system) Open(name string) ([]byte, error) { return y.s.file(name) }

// Create implements shell.System.
func (y system) Create(name string, _ shell.CreateMode, _ uint32) (io.WriteCloser, error) {
	return &file{s: y.s, name: name}, nil
}

// IsDir implements shell.System.
func (system) IsDir(name string) bool { return name == "/tmp" || name == "/etc/sonic" }

// file is one that is written.
type file struct {
	bytes.Buffer
	s    *Switch
	name string
}

// Close implements io.Closer.
func (f *file) Close() error {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	f.s.files[f.name] = slices.Clone(f.Bytes())
	return nil
}

func (s *Switch) file(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, is := s.files[name]
	if !is {
		return nil, fmt.Errorf("%s: No such file or directory", name)
	}
	return b, nil
}

// fail complains as GNU programs do.
func (c call) fail(format string, args ...any) int {
	_, _ = fmt.Fprintf(c.Err, format+"\n", args...)
	return 1
}

// runSudo runs a program as root; admin needs no password.
func runSudo(ctx context.Context, c call) int {
	argv := c.Argv[1:]
	for len(argv) > 0 && argv[0] == "-n" {
		argv = argv[1:]
	}
	if len(argv) == 0 || findProgram(argv[0]) == nil {
		return c.fail("sudo: %s: command not found", strings.Join(argv, " "))
	}
	inner := c.Command
	inner.Argv = argv
	return findProgram(argv[0])(ctx, call{inner, c.s, true})
}

// runShell runs a script in a shell of its own.
func runShell(ctx context.Context, c call) int {
	if len(c.Argv) < 3 || c.Argv[1] != "-c" {
		return c.fail("sh: only -c is known")
	}
	parsed, err := shell.Parse(c.Argv[2])
	if err != nil {
		return c.fail("sh: 1: %v", err)
	}
	name, args := "sh", []string(nil)
	if len(c.Argv) > 3 {
		name, args = c.Argv[3], c.Argv[4:]
	}
	c.s.mu.Lock()
	c.s.last++
	pid := c.s.last
	c.s.mu.Unlock()
	inner := shell.Shell{Sys: system{c.s, c.root, pid}, PID: pid, Name: name, Args: args, Dir: "/home/admin", Env: c.Env}
	return inner.Run(ctx, parsed, c.Streams)
}

// runPrintf knows %s and \n.
func runPrintf(_ context.Context, c call) int {
	if len(c.Argv) < 2 {
		return c.fail("printf: usage: printf format [arguments]")
	}
	text := strings.ReplaceAll(c.Argv[1], `\n`, "\n")
	for _, a := range c.Argv[2:] {
		text = strings.Replace(text, "%s", a, 1)
	}
	_, _ = io.WriteString(c.Out, text)
	return 0
}

func runCat(_ context.Context, c call) int {
	for _, name := range c.Argv[1:] {
		if name == startupFile && !c.root {
			return c.fail("cat: %s: Permission denied", name)
		}
		b, err := c.s.file(name)
		if err != nil {
			return c.fail("cat: %v", err)
		}
		_, _ = c.Out.Write(b)
	}
	return 0
}

func runTee(_ context.Context, c call) int {
	b, err := io.ReadAll(io.LimitReader(c.In, 64<<20))
	if err != nil || len(c.Argv) != 2 {
		return c.fail("tee: %v", err)
	}
	c.s.mu.Lock()
	c.s.files[c.Argv[1]] = b
	c.s.mu.Unlock()
	_, _ = c.Out.Write(b)
	return 0
}

func runRm(_ context.Context, c call) int {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, name := range c.Argv[1:] {
		delete(c.s.files, name)
	}
	return 0
}

// runCfggen knows -d --print-data.
func runCfggen(ctx context.Context, c call) int {
	if !slices.Equal(c.Argv[1:], []string{"-d", "--print-data"}) {
		return c.fail("usage: sonic-cfggen [-h] [-d] [--print-data]")
	}
	if c.s.cfg.Clock.Sleep(ctx, readTime) != nil {
		return 137
	}
	c.s.mu.Lock()
	b := dumpConfig(c.s.config)
	c.s.mu.Unlock()
	_, _ = c.Out.Write(b)
	return 0
}

// runShow knows the running configuration, and what the switch was made with.
func runShow(ctx context.Context, c call) int {
	what := strings.Join(c.Argv[1:], " ")
	if what == "runningconfiguration all" {
		c.Argv = []string{"sonic-cfggen", "-d", "--print-data"}
		return runCfggen(ctx, c)
	}
	if print := c.s.cfg.Show[what]; print != nil {
		_, _ = io.WriteString(c.Out, print())
		return 0
	}
	_, _ = fmt.Fprintf(c.Err, "Usage: show [OPTIONS] COMMAND [ARGS]...\nTry \"show -h\" for help.\n\nError: No such command \"%s\".\n", what)
	return 2
}

// runConfig returns what changes a switch.
func runConfig(ctx context.Context, c call) int {
	if !c.root {
		return c.fail("Root privileges are required for this operation")
	}
	verb, args := "", []string(nil)
	if len(c.Argv) > 1 {
		verb, args = c.Argv[1], c.Argv[2:]
	}
	var err error
	said := "Config rolled back successfully."
	switch verb {
	case "save":
		if c.s.cfg.Clock.Sleep(ctx, readTime) != nil {
			return 137
		}
		c.s.mu.Lock()
		c.s.files[startupFile] = dumpConfig(c.s.config)
		c.s.mu.Unlock()
		said = "Running command: /usr/local/bin/sonic-cfggen -d --print-data > " + startupFile
	case "checkpoint", "delete-checkpoint":
		if said = "Checkpoint created successfully."; verb != "checkpoint" {
			said = "Checkpoint deleted successfully."
		}
		err = c.s.point(ctx, verb, args)
	case "rollback":
		err = c.s.rollback(ctx, args)
	case "apply-patch":
		said, err = c.s.apply(ctx, args)
		verb = "apply-patch"
	default:
		err = newRefusal("No such command %q.", verb)
	}
	if ctx.Err() != nil {
		return 137
	}
	if err != nil {
		_, _ = fmt.Fprintf(c.Err, "%sUsage: config %s [OPTIONS]\nTry \"config %[2]s -h\" for help.\n\nError: %v\n", failures[verb], verb, err)
		return 2
	}
	_, _ = io.WriteString(c.Out, said+"\n")
	return 0
}

// failures are what a verb says before its usage.
var failures = map[string]string{"apply-patch": "Failed to apply patch\n", "rollback": "Failed to rollback config\n", "checkpoint": "Failed to create a config checkpoint\n", "delete-checkpoint": "Failed to delete config checkpoint\n"}

// point makes or removes a checkpoint.
func (s *Switch) point(ctx context.Context, verb string, args []string) error {
	if len(args) != 1 {
		return newRefusal(`Missing argument "CHECKPOINT_NAME".`)
	}
	if err := s.cfg.Clock.Sleep(ctx, readTime); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if verb == "checkpoint" {
		s.points[args[0]] = cloneValue(s.config).(db)
		return nil
	}
	if s.points[args[0]] == nil {
		return newRefusal("Checkpoint '%s' does not exist", args[0])
	}
	delete(s.points, args[0])
	return nil
}

// rollback goes back to a checkpoint.
func (s *Switch) rollback(ctx context.Context, args []string) error {
	s.mu.Lock()
	var to db
	if len(args) == 1 {
		to = s.points[args[0]]
	}
	s.mu.Unlock()
	if to == nil {
		return newRefusal("Checkpoint %v does not exist", args)
	}
	if err := s.cfg.Clock.Sleep(ctx, loadTime); err != nil {
		return err
	}
	return s.become(cloneValue(to).(db), "After replacing config, there is still some parts not updated")
}

// apply is config apply-patch.
func (s *Switch) apply(ctx context.Context, args []string) (string, error) {
	dry, name := false, ""
	for _, a := range args {
		switch a {
		case "-d", "--dry-run":
			dry = true
		case "-n", "--ignore-non-yang-tables", "-v":
		default:
			name = a
		}
	}
	raw, err := s.file(name)
	if err != nil {
		return "", err
	}
	var ops []operation
	if err := json.Unmarshal(raw, &ops); err != nil {
		return "", err
	}
	if err := s.cfg.Clock.Sleep(ctx, loadTime+time.Duration(len(ops))*perChange); err != nil {
		return "", err
	}
	s.mu.Lock()
	target, err := applyPatch(s.config, ops)
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	if list := emptyTables(target); len(list) > 0 {
		return "", fmt.Errorf("localhost: given patch is not valid because it will result in empty tables which is not allowed in ConfigDb. Tables: %s", strings.Join(list, ", "))
	}
	if err := validateConfig(target); err != nil {
		return "", err
	}
	if !dry {
		err = s.become(target, "localhost: after applying patch to config, there are still some parts not updated")
	}
	return fmt.Sprintf("Patch Applier: localhost: Patch application starting.\nPatch Applier: The localhost patch was converted into %s:\nPatch Applier: localhost patch application completed.\nPatch applied successfully.", formatChanges(len(ops))), err
}

// become makes a configuration the running one and looks whether it is.
func (s *Switch) become(target db, complaint string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = cloneValue(target).(db)
	resetStuck(s.config, s.stuck)
	if !reflect.DeepEqual(s.config, target) {
		return fmt.Errorf("%s", complaint)
	}
	return nil
}

// refusal is what a SONiC program says when it does not do what it is told: its own
// words, with their capitals and full stops.
type refusal string

func (r refusal) Error() string { return string(r) }

func newRefusal(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }
