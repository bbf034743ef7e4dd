// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/hostfile"
	"github.com/ironrail/ironrail/internal/onnode"
)

// work is one node that runs.
type work struct {
	nodes onnode.Nodes
	node  string
}

// problem is what is wrong at one place.
type problem struct{ path, text string }

func texts(list []problem) (out []string) {
	for _, p := range list {
		out = append(out, p.text)
	}
	return out
}

// answers is how long a file system may take to say what it is, in seconds: a server that is
// gone lets whoever asks hang.
const answers = "20"

// compare says what of the file systems is not so on the node, and what of earlier ones is
// there still. An error is a node that cannot be asked.
func (w work) compare(ctx context.Context, want, last []Mount) (wrong []problem, err error) {
	mounted, err := onnode.Do(ctx, w.nodes, w.node, "cat", "/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for _, m := range union(want, last) {
		at, is := hostfile.MountAt(string(mounted), m.Path)
		asked := slices.ContainsFunc(want, func(x Mount) bool { return x.Path == m.Path })
		var text string
		switch {
		case !asked && is && at.Source == m.Source:
			text = fmt.Sprintf("%s is mounted still, and nothing is asked for any more", m.Path)
		case !asked:
			text, err = w.leftover(ctx, m)
		case !is:
			text = m.Path + " is not mounted"
		default:
			if text = differs(m, at); text == "" {
				text, err = w.look(ctx, m)
			}
		}
		if err != nil {
			return nil, err
		}
		if text != "" {
			wrong = append(wrong, problem{m.Path, text})
		}
	}
	return wrong, nil
}

// leftover says whether the unit of a file system that is not asked for any more is there.
func (w work) leftover(ctx context.Context, m Mount) (string, error) {
	name := "/" + hostfile.MountUnitFile(m.Path)
	out, err := w.run(ctx, "test", "-e", name)
	if err != nil || out.Exit != 0 {
		return "", err
	}
	return name + " is there, and nothing is asked for any more", nil
}

// differs says what of a file system that is mounted is not as it is asked for. A type may
// show as its successor: nfs as nfs4.
func differs(m Mount, at hostfile.Mounted) string {
	readOnly := slices.Contains(m.Options, "ro")
	switch {
	case at.Source != m.Source:
		return fmt.Sprintf("at %s %q is mounted, not %q", m.Path, at.Source, m.Source)
	case at.Type != m.Type && !strings.HasPrefix(at.Type, m.Type):
		return fmt.Sprintf("at %s a file system of type %q is mounted, not %q", m.Path, at.Type, m.Type)
	case readOnly != slices.Contains(at.Options, "ro"):
		return fmt.Sprintf("%s is mounted with %q, and is to be read-only: %v", m.Path, strings.Join(at.Options, ","), readOnly)
	}
	return ""
}

// look asks a file system that is mounted, and whether it will be after a restart.
func (w work) look(ctx context.Context, m Mount) (string, error) {
	out, err := w.run(ctx, "timeout", answers, "stat", "--file-system", "--", m.Path)
	switch {
	case err != nil:
		return "", err
	case out.Exit == 124: // of timeout(1)
		return fmt.Sprintf("%s is mounted and does not answer: %s did not say anything of it within %s s", m.Path, m.Source, answers), nil
	case out.Exit != 0:
		return fmt.Sprintf("%s is mounted and cannot be read: %s", m.Path, lastLine(out.Stderr)), nil
	}
	name := hostfile.MountUnitFile(m.Path)
	file, err := w.run(ctx, "cat", "--", "/"+name)
	if err != nil {
		return "", err
	}
	if file.Exit != 0 || string(file.Stdout) != hostfile.MountUnit(m.Path, m.Type, m.Source, m.Options) {
		return "/" + name + " is not as the files say", nil
	}
	enabled, err := w.run(ctx, "systemctl", "is-enabled", hostfile.MountUnitName(m.Path))
	if err != nil || enabled.Exit == 0 {
		return "", err
	}
	return m.Path + " is mounted, and will not be after a restart: its unit is " + lastLine(enabled.Stdout), nil
}

// hidden finds files that a file system would be mounted over. Nothing is mounted there yet.
func (w work) hidden(ctx context.Context, want []Mount) (wrong []problem, err error) {
	mounted, err := onnode.Do(ctx, w.nodes, w.node, "cat", "/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	for _, m := range want {
		if _, is := hostfile.MountAt(string(mounted), m.Path); is {
			continue
		}
		out, err := w.run(ctx, "ls", "-A", "--", m.Path) // another status: there is no such folder
		if err != nil {
			return nil, err
		}
		if first := lastLine(out.Stdout); first != "" {
			wrong = append(wrong, problem{m.Path, fmt.Sprintf("%s is not empty (%s is there): what is in it would be hidden", m.Path, first)})
		}
	}
	return wrong, nil
}

// apply mounts what is asked for and takes back what is not asked for any more. Doing it
// twice is harmless. What does not come up is seen when it is read back.
func (w work) apply(ctx context.Context, want, last []Mount, say func(string)) error {
	for _, m := range union(want, last)[len(want):] {
		say("unmount " + m.Path)
		if err := w.unmount(ctx, m); err != nil {
			return err
		}
	}
	var verbs [][]string
	for _, m := range want {
		name, unit, text := "/"+hostfile.MountUnitFile(m.Path), hostfile.MountUnitName(m.Path), hostfile.MountUnit(m.Path, m.Type, m.Source, m.Options)
		have, err := w.run(ctx, "cat", "--", name)
		if err != nil {
			return err
		}
		verb := "start"
		if have.Exit != 0 || string(have.Stdout) != text {
			verb = "restart"
			if err := onnode.Write(ctx, w.nodes, w.node, name, 0o644, []byte(text)); err != nil {
				return err
			}
		}
		verbs = append(verbs, []string{"enable", unit}, []string{verb, unit})
	}
	if err := onnode.Exec(ctx, w.nodes, w.node, "systemctl", "daemon-reload"); err != nil {
		return err
	}
	for _, v := range verbs {
		if v[0] != "enable" {
			say(v[0] + " " + v[1])
		}
		if _, err := w.run(ctx, append([]string{"systemctl"}, v...)...); err != nil {
			return err
		}
	}
	return nil
}

// unmount takes a file system back. Of one that is in use the unit stays, so that it is found
// again.
func (w work) unmount(ctx context.Context, m Mount) error {
	unit := hostfile.MountUnitName(m.Path)
	if _, err := w.run(ctx, "systemctl", "disable", "--now", unit); err != nil {
		return err
	}
	if out, err := w.run(ctx, "systemctl", "is-active", unit); err != nil || out.Exit == 0 {
		return err
	}
	return onnode.Exec(ctx, w.nodes, w.node, "rm", "-f", "--", "/"+hostfile.MountUnitFile(m.Path))
}

// explain adds to each problem what mount(8) said last, and returns what the node's journal has
// of their units.
func (w work) explain(ctx context.Context, wrong []problem) (journal []byte, err error) {
	for i, p := range wrong {
		out, err := w.run(ctx, "journalctl", "--no-pager", "--quiet", "--boot", "--lines=20", "--output=cat", "--unit="+hostfile.MountUnitName(p.path))
		if err != nil {
			return nil, err
		}
		journal = append(journal, out.Stdout...)
		for line := range strings.Lines(string(out.Stdout)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "mount") && strings.Contains(line, ": ") {
				wrong[i].text = p.text + ": " + line
			}
		}
	}
	return journal, nil
}

func (w work) run(ctx context.Context, argv ...string) (onnode.Output, error) {
	out, err := w.nodes.Run(ctx, w.node, onnode.Command{Argv: argv})
	if err != nil {
		return out, fmt.Errorf("node %s: %s: %w", w.node, argv[0], err)
	}
	return out, nil
}

// lastLine is the last line that says something.
func lastLine(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}
