// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/onnode"
)

// Dnf is dnf and rpm with one repository only. What is held is listed for dnf's
// plugin versionlock (python3-dnf-plugin-versionlock), between marks in the file that
// the administrator has too: locks keep a package from each other version, and from what
// would take its place by another name.
type Dnf struct{ On }

func (d Dnf) id() string   { return "ironrail-" + d.Source }
func (d Dnf) repo() string { return "/etc/yum.repos.d/" + d.id() + ".repo" }
func (d Dnf) key() string  { return "/etc/pki/rpm-gpg/RPM-GPG-KEY-" + d.id() }

// versionLock is the list of the plugin, and lockPlugin the package that has it
// (dnf-plugins-core, versionlock).
const (
	versionLock = "/etc/dnf/plugins/versionlock.list"
	lockPlugin  = "python3-dnf-plugin-versionlock"
)

// Configure implements Manager. The signed index has the digest of each package, whose own
// signature by its vendor the controller has looked at. Streams of modules do not hide a package
// of this repository (module_hotfixes).
func (d Dnf) Configure(ctx context.Context, r Repository) error {
	if err := onnode.Write(ctx, d.Nodes, d.Node, d.key(), 0o644, r.ArmoredKey); err != nil {
		return err
	}
	text := fmt.Sprintf("[%[1]s]\nname=%[1]s\nbaseurl=%[2]s\nenabled=0\ngpgcheck=0\nrepo_gpgcheck=1\nmodule_hotfixes=1\ngpgkey=file://%[3]s\n", d.id(), r.URL, d.key())
	return onnode.Write(ctx, d.Nodes, d.Node, d.repo(), 0o644, []byte(text))
}

// Pin implements Manager: there is nothing to do. The repository has one version of each
// package, and is not enabled for whoever upgrades the system; what is installed is held then.
func (d Dnf) Pin(context.Context, []repo.Pin) error { return nil }

// Hold implements Manager.
func (d Dnf) Hold(ctx context.Context, names []string) error {
	have, err := d.Installed(ctx, names)
	if err != nil {
		return err
	}
	var lines []string
	for _, name := range names {
		for _, version := range strings.Fields(have[name]) {
			lines = append(lines, name+"-"+withEpoch(version)+".*")
		}
	}
	return d.lock(ctx, lines)
}

// withEpoch is a version with its epoch, also where that is 0.
func withEpoch(version string) string {
	if strings.Contains(version, ":") {
		return version
	}
	return "0:" + version
}

// lockedName is the package that a line of the list locks, as NAME-EPOCH:VERSION-RELEASE.*.
func lockedName(line string) string {
	before, _, ok := strings.Cut(line, ":")
	i := strings.LastIndex(before, "-")
	if !ok || i < 0 {
		return ""
	}
	return before[:i]
}

// Held implements Manager. Without the plugin nothing is.
func (d Dnf) Held(ctx context.Context) ([]string, error) {
	plugin, err := d.Installed(ctx, []string{lockPlugin})
	if err != nil || plugin[lockPlugin] == "" {
		return nil, err
	}
	text, err := d.query(ctx, 1, "cat", versionLock)
	var names []string
	in := false
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSpace(line); {
		case line == "# "+d.id()+" holds":
			in = true
		case strings.HasPrefix(line, "#"):
			in = false
		case in:
			names = append(names, lockedName(line))
		}
	}
	return slices.Compact(names), err
}

// Release implements Manager: what stays held is written anew.
func (d Dnf) Release(ctx context.Context, names []string) error {
	held, err := d.Held(ctx)
	if err != nil || len(held) == 0 {
		return err
	}
	return d.Hold(ctx, slices.DeleteFunc(held, func(n string) bool { return slices.Contains(names, n) }))
}

// lock writes the part of this stack in the plugin's list, between marks of its own.
func (d Dnf) lock(ctx context.Context, lines []string) error {
	was, err := d.query(ctx, 1, "cat", versionLock) // status 1: there is none yet
	if err != nil {
		return err
	}
	begin, end := "# "+d.id()+" holds", "# end of "+d.id()+" holds"
	return onnode.Write(ctx, d.Nodes, d.Node, versionLock, 0o644, []byte(linesBetween(string(was), begin, end, lines)))
}

// linesBetween replaces the lines between two marks, or adds them with their marks.
func linesBetween(text, begin, end string, lines []string) string {
	var out []string
	in := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line == begin:
			in = true
		case line == end:
			in = false
		case !in:
			out = append(out, line)
		}
	}
	if len(lines) > 0 {
		out = append(append(append(out, begin), lines...), end)
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n") + "\n"
}

// Refresh implements Manager.
func (d Dnf) Refresh(ctx context.Context) error { return d.dnf(ctx, "makecache", "makecache") }

// Install implements Manager. dnf brings what is named with its version to that, up or down
// (dnf(8), install), and so each package of the repository that is there in another version is
// named: they move together, and stay together.
func (d Dnf) Install(ctx context.Context, r Repository, names []string) error {
	have, err := d.Installed(ctx, slices.Sorted(maps.Keys(r.Packages)))
	if err != nil {
		return err
	}
	args := []string{"--allowerasing", "install"}
	for _, name := range names {
		args = append(args, d.named(r, name))
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !slices.Contains(strings.Fields(have[name]), r.Packages[name]) && !slices.Contains(names, name) {
			args = append(args, d.named(r, name))
		}
	}
	return d.dnf(ctx, "install", args...)
}

// named is a package as dnf takes it, with its version where the repository has it.
func (d Dnf) named(r Repository, name string) string {
	if version := r.Packages[name]; version != "" {
		return name + "-" + withEpoch(version)
	}
	return name
}

// dnf runs dnf with this repository alone; dnf itself waits for its lock.
func (d Dnf) dnf(ctx context.Context, what string, args ...string) error {
	argv := append([]string{"env", "LC_ALL=C", "dnf", "--quiet", "--assumeyes", "--disablerepo=*", "--enablerepo=" + d.id(),
		"--setopt=install_weak_deps=False", "--setopt=timeout=30", "--setopt=retries=3", "--setopt=proxy="}, args...)
	err := onnode.Exec(ctx, d.Nodes, d.Node, argv...)
	if ee, ended := errors.AsType[*onnode.ExitError](err); ended {
		return d.failure("dnf-"+what, ee, "Read the attached output of dnf, then apply again.")
	}
	return err
}

// maxNames bounds how many packages one question is about: a command line has its limits.
// rpm ends with the number of those that it does not know, of which a status holds 255.
const maxNames = 200

// Installed implements Manager. rpm prints a line for each package that it does not know:
// those have no tab.
func (d Dnf) Installed(ctx context.Context, names []string) (map[string]string, error) {
	have := map[string]string{}
	for some := range slices.Chunk(names, maxNames) {
		argv := append([]string{"env", "LC_ALL=C", "rpm", "--query", "--queryformat=%{NAME}\t%{EPOCHNUM}\t%{VERSION}-%{RELEASE}\n", "--"}, some...)
		out, err := d.Nodes.Run(ctx, d.Node, onnode.Command{Argv: argv})
		if err != nil {
			return nil, fmt.Errorf("node %s: rpm: %w", d.Node, err)
		}
		if out.Exit > len(some) || bytes.Contains(out.Stderr, []byte("error:")) { // its database cannot be read
			return nil, &onnode.ExitError{Node: d.Node, Argv: argv, Output: out}
		}
		for line := range strings.Lines(string(out.Stdout)) {
			f := strings.Split(strings.TrimRight(line, "\n"), "\t")
			if len(f) != 3 || !slices.Contains(some, f[0]) {
				continue
			}
			version := strings.TrimPrefix(f[1]+":"+f[2], "0:")
			have[f[0]] = strings.TrimSpace(have[f[0]] + " " + version)
		}
	}
	return have, nil
}

// Unfinished implements Manager: rpm has no such state. A module that did not
// build is seen by its absence.
func (d Dnf) Unfinished(context.Context) ([]string, error) { return nil, nil }
