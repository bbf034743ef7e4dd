// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/hostfile"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
)

// work is one node that runs.
type work struct {
	nodes onnode.Nodes
	node  string
}

// file is one file that settings are written into; text is "" where the file is not to
// be there.
type file struct {
	name, text string
	mode       uint32
}

// files are the files of settings, and those of earlier ones that are to go.
func files(want, last wire.HostSettings) (list []file) {
	if len(want.Sysctl) > 0 || len(last.Sysctl) > 0 {
		f := file{name: hostfile.SysctlFile, mode: 0o644}
		if len(want.Sysctl) > 0 {
			f.text = hostfile.Sysctl(want.Sysctl)
		}
		list = append(list, f)
	}
	if len(want.SudoGroups) > 0 || len(last.SudoGroups) > 0 {
		f := file{name: hostfile.SudoersFile, mode: 0o440}
		if len(want.SudoGroups) > 0 {
			f.text = hostfile.Sudoers(want.SudoGroups)
		}
		list = append(list, f)
	}
	if want.Locale != "" { // one that is no longer given stays: there is always one
		list = append(list, file{hostfile.LocaleFile, hostfile.Locale(want.Locale), 0o644})
	}
	return list
}

// compare says in words what of the settings is not so on the node. An error is a node
// that cannot be asked.
func (w work) compare(ctx context.Context, want, last wire.HostSettings) (wrong []string, err error) {
	for _, f := range files(want, last) {
		have, there, err := w.read(ctx, "/"+f.name)
		switch {
		case err != nil:
			return nil, err
		case f.text == "" && there:
			wrong = append(wrong, "/"+f.name+" is there, and nothing is asked for any more")
		case f.text != "" && have != f.text:
			wrong = append(wrong, "/"+f.name+" is not as the files say")
		}
	}
	for _, look := range []func(context.Context, wire.HostSettings) ([]string, error){w.compareSysctl, w.compareLocale, w.compareSudo} {
		found, err := look(ctx, want)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, found...)
	}
	found, err := w.compareHold(ctx, want, last)
	return append(wrong, found...), err
}

// read returns the content of a file of the node; false where it is not there.
func (w work) read(ctx context.Context, name string) (text string, there bool, err error) {
	out, err := w.nodes.Run(ctx, w.node, onnode.Command{Argv: []string{"cat", "--", name}})
	if err != nil {
		return "", false, fmt.Errorf("node %s: read %s: %w", w.node, name, err)
	}
	return string(out.Stdout), out.Exit == 0, nil
}

// compareSysctl reads back what the kernel has.
func (w work) compareSysctl(ctx context.Context, want wire.HostSettings) (wrong []string, err error) {
	keys := slices.Sorted(maps.Keys(want.Sysctl))
	if len(keys) == 0 {
		return nil, nil
	}
	argv := []string{"grep", "-s", "-H", "", "--"}
	for _, key := range keys {
		argv = append(argv, "/"+hostfile.SysctlPath(key))
	}
	out, err := w.nodes.Run(ctx, w.node, onnode.Command{Argv: argv}) // status 1 or 2: some are not there
	if err != nil {
		return nil, fmt.Errorf("node %s: read sysctl: %w", w.node, err)
	}
	have := map[string]string{}
	for line := range strings.Lines(string(out.Stdout)) {
		name, value, ok := strings.Cut(line, ":")
		if _, seen := have[name]; ok && !seen {
			have[name] = strings.TrimSpace(value)
		}
	}
	for _, key := range keys {
		value, there := have["/"+hostfile.SysctlPath(key)]
		switch {
		case !there:
			wrong = append(wrong, "the kernel has no sysctl "+key)
		case !hostfile.IsSameValue(want.Sysctl[key], value):
			wrong = append(wrong, fmt.Sprintf("sysctl %s is %q, not %q", key, value, want.Sysctl[key]))
		}
	}
	return wrong, nil
}

// builtin reports whether a locale needs no package.
func builtin(name string) bool {
	return name == "C" || name == "POSIX" || hostfile.IsSameLocale(name, "C.UTF-8")
}

// compareLocale asks for the locales that the system has.
func (w work) compareLocale(ctx context.Context, want wire.HostSettings) ([]string, error) {
	if want.Locale == "" || builtin(want.Locale) {
		return nil, nil
	}
	out, err := w.nodes.Run(ctx, w.node, onnode.Command{Argv: []string{"locale", "-a"}})
	if err != nil {
		return nil, fmt.Errorf("node %s: list the locales: %w", w.node, err)
	}
	for have := range strings.FieldsSeq(string(out.Stdout)) {
		if hostfile.IsSameLocale(have, want.Locale) {
			return nil, nil
		}
	}
	return []string{"the system has no locale " + want.Locale}, nil
}

// compareSudo looks whether there is a sudo to read the groups.
func (w work) compareSudo(ctx context.Context, want wire.HostSettings) ([]string, error) {
	if len(want.SudoGroups) == 0 {
		return nil, nil
	}
	there, err := w.exists(ctx, "usr/bin/sudo")
	if err != nil {
		return nil, err
	}
	if !there {
		return []string{"the system has no sudo, so that no group may become root by it"}, nil
	}
	return nil, nil
}

// apply makes the settings so. Doing it twice is harmless.
func (w work) apply(ctx context.Context, want, last wire.HostSettings) error {
	for _, f := range files(want, last) {
		var err error
		if f.text == "" {
			err = onnode.Exec(ctx, w.nodes, w.node, "rm", "-f", "--", "/"+f.name)
		} else {
			err = onnode.Write(ctx, w.nodes, w.node, "/"+f.name, f.mode, []byte(f.text))
		}
		if err != nil {
			return err
		}
	}
	if len(want.Sysctl) > 0 {
		// What the kernel does not take is seen when it is read back.
		if _, err := w.nodes.Run(ctx, w.node, onnode.Command{Argv: []string{"/usr/lib/systemd/systemd-sysctl", "/" + hostfile.SysctlFile}, StatusOnly: true}); err != nil {
			return fmt.Errorf("node %s: set sysctl: %w", w.node, err)
		}
	}
	if err := w.writeDebianLocale(ctx, want); err != nil {
		return err
	}
	return w.hold(ctx, want, last)
}

// writeDebianLocale writes the file that Debian reads the locale from, where there is
// one.
func (w work) writeDebianLocale(ctx context.Context, want wire.HostSettings) error {
	name := "/" + hostfile.DebianLocaleFile
	if want.Locale == "" {
		return nil
	}
	if _, there, err := w.read(ctx, name); err != nil || !there {
		return err
	}
	return onnode.Write(ctx, w.nodes, w.node, name, 0o644, []byte(hostfile.Locale(want.Locale)))
}
