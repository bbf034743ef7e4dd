// SPDX-License-Identifier: Apache-2.0

// Command ironrail-release makes what users install, for each processor that controllers
// have: packages of dpkg and rpm, an OCI image, archives, each with manual pages,
// completions and the licences of all that is linked, beside them the modules as SPDX, and
// checksums of everything, signed where a key is given. It needs the Go tool chain and
// git; nfpm is run by go at an exact version. The same commit gives the same bytes.
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
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// architectures are those of nodes, and of controllers unless some are named.
var architectures = []string{"amd64", "arm64"}

func main() {
	var r release
	flag.StringVar(&r.out, "out", "dist", "write into `FOLDER`, which is new or empty")
	flag.Func("arch", "processor of controllers, amd64 or arm64; may be given twice (default both)", r.addArch)
	flag.StringVar(&r.key, "key", "", "sign the checksums with a secret key of minisign, a `FILE`")
	flag.StringVar(&r.passphrase, "passphrase-file", "", "the key's passphrase is the first line of `FILE`; else it is asked for")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Makes packages, archives and an image of ironrail from the commit that is checked out.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(64)
	}
	if len(r.archs) == 0 {
		r.archs = architectures
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// release is one run.
type release struct {
	out, key, passphrase string
	archs                []string // of controllers

	source
	work string // a folder for what goes into packages
}

// addArch adds a kind of controllers.
func (r *release) addArch(arch string) error {
	if !slices.Contains(architectures, arch) {
		return fmt.Errorf("none of %s", strings.Join(architectures, ", "))
	}
	if !slices.Contains(r.archs, arch) {
		r.archs = append(r.archs, arch)
	}
	return nil
}

// run makes everything; a run that fails leaves no checksums, and so nothing that looks whole.
func (r *release) run(ctx context.Context) (err error) {
	if list, err := os.ReadDir(r.out); err == nil && len(list) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or name another folder with --out", r.out)
	}
	if r.source, err = readSource(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "ironrail-release"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	for _, arch := range r.archs {
		if err := r.compile(ctx, arch); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	if err := r.common(ctx); err != nil {
		return err
	}
	for _, arch := range r.archs {
		if err := r.pack(ctx, arch); err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
	}
	if err := r.writeImage(); err != nil {
		return fmt.Errorf("OCI image: %w", err)
	}
	return r.sum(ctx)
}

// pack writes what there is for one kind of processor.
func (r *release) pack(ctx context.Context, arch string) error {
	for _, format := range []string{"deb", "rpm"} {
		if err := r.writePackage(ctx, arch, format); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return errors.Join(r.writeArchive(arch), r.writeModules(arch))
}

// command runs a program of the tool chain and returns what it printed.
func command(ctx context.Context, env []string, argv ...string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	return output(cmd)
}

// output runs a program; what it printed is part of its error.
func output(cmd *exec.Cmd) (string, error) {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out, complaints.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}

// self is the program for this computer: it prints the manual and signs.
func (r *release) self() string { return filepath.Join(r.work, "self", "ironrail") }

// programs is the folder of the programs for an architecture.
func (r *release) programs(arch string) string { return filepath.Join(r.work, arch) }

// compile builds the programs for one kind of controllers: ironrail, and an agent for nodes
// of each kind.
func (r *release) compile(ctx context.Context, arch string) error {
	env := []string{"CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=-trimpath -gcflags=all=-dwarf=false -buildvcs=true"}
	flags := "-s -w"
	if r.described != "" {
		flags += " -X main.release=" + r.described
	}
	build := func(arch, name, pkg string) error {
		_, err := command(ctx, append(env, "GOARCH="+arch), "go", "build", "-ldflags", flags, "-o", name, pkg)
		return err
	}
	to := r.programs(arch)
	if err := errors.Join(build(runtime.GOARCH, r.self(), "./cmd/ironrail"), build(arch, filepath.Join(to, "ironrail"), "./cmd/ironrail")); err != nil {
		return err
	}
	for _, node := range architectures {
		name := "ironrail-agent"
		if node != arch {
			name += "-" + node
		}
		if err := build(node, filepath.Join(to, name), "./cmd/ironrail-agent"); err != nil {
			return err
		}
	}
	return nil
}
