// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/onnode"
)

// Dnf is dnf and rpm with one repository only. What is held is listed for dnf's
// plugin versionlock (python3-dnf-plugin-versionlock), in a file that the plugin
// reads beside the administrator's own.
type Dnf struct{ On }

func (d Dnf) id() string   { return "ironrail-" + d.Source }
func (d Dnf) repo() string { return "/etc/yum.repos.d/" + d.id() + ".repo" }
func (d Dnf) key() string  { return "/etc/pki/rpm-gpg/RPM-GPG-KEY-" + d.id() }

// versionLock is the list of the plugin (dnf-plugins-core, versionlock).
const versionLock = "/etc/dnf/plugins/versionlock.list"

// Configure implements Manager.
func (d Dnf) Configure(ctx context.Context, r Repository) error {
	if err := onnode.Write(ctx, d.Nodes, d.Node, d.key(), 0o644, r.ArmoredKey); err != nil {
		return err
	}
	text := fmt.Sprintf("[%[1]s]\nname=%[1]s\nbaseurl=%[2]s\nenabled=1\ngpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file://%[3]s\n", d.id(), r.URL, d.key())
	return onnode.Write(ctx, d.Nodes, d.Node, d.repo(), 0o644, []byte(text))
}

// Pin implements Manager: the pins of this stack take the place of its earlier ones
// in the list of the plugin. A pattern of names is one of glob(7) there as well.
func (d Dnf) Pin(ctx context.Context, pins []repo.Pin) error {
	var lines []string
	for _, p := range pins {
		for _, name := range p.Packages {
			lines = append(lines, name+"-0:"+p.Version)
		}
	}
	return d.lock(ctx, "pins", lines)
}

// Hold implements Manager.
func (d Dnf) Hold(ctx context.Context, names []string) error {
	have, err := d.Installed(ctx, names)
	if err != nil {
		return err
	}
	var lines []string
	for _, name := range names {
		if have[name] != "" {
			lines = append(lines, name+"-0:"+have[name]+".*")
		}
	}
	return d.lock(ctx, "holds", lines)
}

// Held implements Manager.
func (d Dnf) Held(ctx context.Context) ([]string, error) {
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
			name, _, _ := strings.Cut(line, "-0:")
			names = append(names, name)
		}
	}
	return names, err
}

// Release implements Manager: what stays held is written anew.
func (d Dnf) Release(ctx context.Context, names []string) error {
	held, err := d.Held(ctx)
	if err != nil || len(held) == 0 {
		return err
	}
	return d.Hold(ctx, slices.DeleteFunc(held, func(n string) bool { return slices.Contains(names, n) }))
}

// lock writes one part of the plugin's list, between marks of its own.
func (d Dnf) lock(ctx context.Context, what string, lines []string) error {
	was, err := d.query(ctx, 1, "cat", versionLock) // status 1: there is none yet
	if err != nil {
		return err
	}
	begin, end := "# "+d.id()+" "+what, "# end of "+d.id()+" "+what
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

// Install implements Manager. dnf has no verb that goes both up and down: what is
// newer than asked for is downgraded first.
func (d Dnf) Install(ctx context.Context, packages []Package) error {
	var names, words []string
	for _, p := range packages {
		names = append(names, p.Name)
		word := p.Name
		if p.Version != "" {
			word += "-" + p.Version
		}
		words = append(words, word)
	}
	have, err := d.Installed(ctx, names)
	if err != nil {
		return err
	}
	var down []string
	for i, p := range packages {
		if v := have[p.Name]; v != "" && p.Version != "" && v != p.Version {
			down = append(down, words[i])
		}
	}
	if len(down) > 0 {
		if err := d.dnf(ctx, "downgrade", append([]string{"--allowerasing", "--skip-broken", "downgrade"}, down...)...); err != nil {
			return err
		}
	}
	return d.dnf(ctx, "install", append([]string{"--allowerasing", "install"}, words...)...)
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

// Installed implements Manager. rpm ends with the number of packages that it does
// not know, and prints a line for each: those have no tab.
func (d Dnf) Installed(ctx context.Context, names []string) (map[string]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := d.query(ctx, len(names), append([]string{"rpm", "--query", "--queryformat=%{NAME}\t%{VERSION}-%{RELEASE}\n", "--"}, names...)...)
	if err != nil {
		return nil, err
	}
	have := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, version, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t"); ok && slices.Contains(names, name) {
			have[name] = version
		}
	}
	return have, nil
}

// Unfinished implements Manager: rpm has no such state. A module that did not
// build is seen by its absence.
func (d Dnf) Unfinished(context.Context) ([]string, error) { return nil, nil }
