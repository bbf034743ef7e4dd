// SPDX-License-Identifier: Apache-2.0

// Command fuzz runs the fuzz targets of the repository, one after another, each until it
// has tried a number of inputs, and fails where one finds something or tries too few.
//
//	fuzz [-inputs 100000] [-of 1/10] [-only PATTERN]
//
// Go's own minimisation of interesting inputs can take all of a run's time: it is bounded
// to five tries. Targets whose inputs are large pieces of work, each some milliseconds,
// try a tenth; they are listed in slow. Inputs that a target found interesting stay in
// Go's cache, and those that fail in testdata/fuzz of the package.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// hang ends a target that makes no progress; it decides nothing else.
const hang = 30 * time.Minute

// slow are the targets whose inputs take milliseconds: whole sites, shells, services,
// sockets and state files.
var slow = []string{
	"draw/svg.FuzzText", "fabric/topology.FuzzBuild", "inventory.FuzzLoad", "inventory/language.FuzzFormat", "inventory/vendorlist.FuzzRead",
	"tool/recognise.FuzzRead", "engine/control.FuzzHandler", "engine/control.FuzzSocket", "engine/state.FuzzFile", "rehearse/virtual/redfish.FuzzIdentify",
	"rehearse/virtual/redfish.FuzzRequest", "rehearse/virtual/system.FuzzScript", "rehearse/virtual/system.FuzzTexts", "rehearse/virtual/system/shell.FuzzRun",
	"provision/agent/disk.FuzzProbe", "internal/manifest.FuzzVerify",
}

// target is one fuzz function.
type target struct{ dir, name string }

func (t target) String() string { return t.dir + "." + t.name }

func main() {
	inputs := flag.Int("inputs", 100_000, "inputs to try with each target; a tenth with slow ones")
	share := flag.String("of", "1/1", "which share of the targets: 3/10 is the third tenth")
	only := flag.String("only", "", "regular expression that the target's folder.Name matches")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runTargets(ctx, *inputs, *share, *only); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

func runTargets(ctx context.Context, inputs int, share, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	part, of, err := parseShare(share)
	if err != nil {
		return err
	}
	all, err := listTargets(".")
	if err != nil {
		return err
	}
	var failed []string
	tried := 0
	for _, t := range all {
		if !pattern.MatchString(t.String()) || shareOf(t, of) != part {
			continue
		}
		tried++
		want := inputs
		if slices.Contains(slow, t.String()) {
			want = max(1, inputs/10)
		}
		n, out, err := fuzzTarget(ctx, t, want)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed = append(failed, t.String())
			fmt.Printf("FAIL  %-60s %9d inputs: %v\n%s\n", t, n, err, out)
		case n < want:
			failed = append(failed, t.String())
			fmt.Printf("FEW   %-60s %9d inputs, %d are wanted\n", t, n, want)
		default:
			fmt.Printf("ok    %-60s %9d inputs\n", t, n)
		}
	}
	switch {
	case tried == 0:
		return errors.New("no fuzz target matches: run it in the repository's folder")
	case len(failed) > 0:
		return fmt.Errorf("%d of %d targets failed: %s", len(failed), tried, strings.Join(failed, ", "))
	}
	fmt.Printf("%d targets of %d passed.\n", tried, len(all))
	return nil
}

// parseShare reads "3/10".
func parseShare(s string) (part, of int, err error) {
	a, b, ok := strings.Cut(s, "/")
	part, err1 := strconv.Atoi(a)
	of, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || of < 1 || part < 1 || part > of {
		return 0, 0, fmt.Errorf("-of %q is not as 3/10", s)
	}
	return part, of, nil
}

// shareOf is the share that a target is of, from 1: by its name, so that a new target
// moves no other.
func shareOf(t target, of int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.String()))
	return int(h.Sum32()%uint32(of)) + 1
}

// listTargets lists the fuzz functions below a folder, by name.
func listTargets(root string) (all []target, err error) {
	set := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz") && fn.Type.Params.NumFields() == 1 {
				all = append(all, target{filepath.ToSlash(filepath.Dir(path)), fn.Name.Name})
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	return all, err
}

// execs is the line in which the Go tool counts.
var execs = regexp.MustCompile(`execs: (\d+)`)

// fuzzTarget runs one target and returns how many inputs it tried, and the end of its output.
func fuzzTarget(ctx context.Context, t target, inputs int) (n int, out string, err error) {
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", strconv.Itoa(inputs)+"x", "-fuzzminimizetime", "5x", "./"+t.dir)
	cmd.WaitDelay = 10 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return 0, "", err
	}
	var last []string
	for s := bufio.NewScanner(pipe); s.Scan(); {
		line := s.Text()
		if m := execs.FindStringSubmatch(line); m != nil {
			n, _ = strconv.Atoi(m[1])
			continue
		}
		if last = append(last, "      "+line); len(last) > 40 {
			last = last[1:]
		}
	}
	err = cmd.Wait()
	return n, strings.Join(last, "\n"), err
}
