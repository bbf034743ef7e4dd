// SPDX-License-Identifier: Apache-2.0

package slurm

import (
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
	e := handover.WriteEffect(string(step)+"/write", "Slurm's node lines", dir, files, func(path string, content []byte) { showFile(run, path, content) })
	e.Probe = func(context.Context) (stage.Probe, string, error) {
		o, err := observeFiles(dir, files)
		if o.State == stage.Conforms {
			return stage.Done, o.Evidence, err
		}
		return stage.NotDone, o.Evidence, err
	}
	writeAll := e.Do
	e.Do = func(ctx context.Context) error {
		if err := writeAll(ctx); err != nil {
			return err
		}
		return removeOutdated(dir, files)
	}
	return handover.DoEffect(ctx, run, of, e)
}

// observeFiles compares the files in a folder with what they should be; one of an earlier form
// that is left differs as well.
func observeFiles(dir string, files []handover.File) (stage.Observation, error) {
	o, err := handover.ObserveFiles(dir, files)
	if err != nil || o.State != stage.Conforms {
		return o, err
	}
	for _, name := range outdated(files) {
		switch _, err := os.Lstat(filepath.Join(dir, name)); {
		case err == nil:
			return stage.Observation{State: stage.Differs, Evidence: name + " is left from before"}, nil
		case !errors.Is(err, fs.ErrNotExist):
			return stage.Observation{State: stage.Unknown}, err
		}
	}
	return o, nil
}

// outdated names the files that slurmctld would read and that are not among those that are
// written: topology.yaml takes precedence over topology.conf.
func outdated(files []handover.File) []string {
	return slices.DeleteFunc([]string{"gres.conf", "topology.conf", "topology.yaml"}, func(name string) bool {
		return slices.ContainsFunc(files, func(f handover.File) bool { return f.Name == name })
	})
}

// removeOutdated removes the files of an earlier form.
func removeOutdated(dir string, files []handover.File) error {
	for _, name := range outdated(files) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// warnSettings says which settings of slurm.conf do not go with the files; the site's own
// file has them, and slurmctld would not start.
func warnSettings(run stage.Run, files []handover.File, d daemon) {
	for _, f := range files {
		text := ""
		switch plugin := pluginOf(f); {
		case f.Name == "gres.conf" && !slices.Contains(d.gres, "gpu"):
			text = "slurm.conf of slurmctld needs GresTypes=gpu before nodes.conf is included"
		case plugin != "" && d.plugin != "" && d.plugin != plugin:
			text = fmt.Sprintf("slurm.conf of slurmctld has TopologyPlugin=%s, and %s is for %s", d.plugin, f.Name, plugin)
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
