// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/handover"
)

// write writes the files, as an effect of a step on a subject.
func (s *Slurm) write(ctx context.Context, run stage.Run, t handover.Target, step plan.StepID, of subject.ID) error {
	d, err := s.daemon(ctx, t)
	if err != nil {
		return err
	}
	files, err := renderFiles(t, d)
	if err != nil {
		return err
	}
	if d.asked {
		warnSettings(run, files, d)
	}
	dir := filepath.Join(s.dir, t.Name)
	return handover.DoEffect(ctx, run, of, stage.Effect{
		Key: string(step) + "/write", Kind: plan.Config, Repeatable: true,
		Does: "write Slurm's node lines to " + dir,
		Probe: func(context.Context) (stage.Probe, string, error) {
			o, err := observeFiles(dir, files)
			if o.State == stage.Conforms {
				return stage.Done, o.Evidence, err
			}
			return stage.NotDone, o.Evidence, err
		},
		Do: func(context.Context) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			for _, f := range files {
				if err := durable.Write(filepath.Join(dir, f.name), f.content, 0o644); err != nil {
					return errkind.New(errkind.Refused, "write %s: %w", filepath.Join(dir, f.name), err)
				}
				showFile(run, filepath.Join(dir, f.name), f.content)
			}
			return removeOutdated(dir, files)
		},
	})
}

// observeFiles looks whether a folder has the files, and none of an earlier form.
func observeFiles(dir string, files []file) (stage.Observation, error) {
	for _, f := range files {
		have, err := os.ReadFile(filepath.Join(dir, f.name))
		switch {
		case os.IsNotExist(err):
			return stage.Observation{State: stage.Differs, Evidence: f.name + " is not written yet"}, nil
		case err != nil:
			return stage.Observation{State: stage.Unknown}, err
		case !bytes.Equal(have, f.content):
			return stage.Observation{State: stage.Differs, Evidence: f.name + " has other lines"}, nil
		}
	}
	return stage.Observation{State: stage.Conforms, Evidence: "the files hold these nodes"}, nil
}

// removeOutdated removes the files of an earlier form, which slurmctld would read as
// well: topology.yaml takes precedence over topology.conf.
func removeOutdated(dir string, files []file) error {
	for _, name := range []string{"gres.conf", "topology.conf", "topology.yaml"} {
		if slices.ContainsFunc(files, func(f file) bool { return f.name == name }) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// warnSettings says which settings of slurm.conf do not go with the files; the site's own
// file has them, and slurmctld would not start.
func warnSettings(run stage.Run, files []file, d daemon) {
	for _, f := range files {
		text := ""
		switch plugin := pluginOf(f); {
		case f.name == "gres.conf" && !slices.Contains(d.gres, "gpu"):
			text = "slurm.conf of slurmctld needs GresTypes=gpu before nodes.conf is included"
		case plugin != "" && d.plugin != "" && d.plugin != plugin:
			text = fmt.Sprintf("slurm.conf of slurmctld has TopologyPlugin=%s, and %s is for %s", d.plugin, f.name, plugin)
		}
		if text != "" {
			run.Emit(event.Event{Type: event.Note, Text: text})
		}
	}
}

// showFile tells what was written, a line at a time.
func showFile(run stage.Run, file string, content []byte) {
	run.Emit(event.Event{Type: event.Note, Text: "wrote " + file})
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "#") {
			run.Emit(event.Event{Type: event.Note, Text: "  " + strings.TrimSuffix(line, "\n")})
		}
	}
}
