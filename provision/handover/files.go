// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// File is one file that lists nodes.
type File struct {
	Name    string
	Content []byte
}

// ObserveFiles compares the files in a folder of the controller with what they should be.
func ObserveFiles(dir string, files []File) (stage.Observation, error) {
	for _, f := range files {
		have, err := os.ReadFile(filepath.Join(dir, f.Name))
		switch {
		case os.IsNotExist(err):
			return stage.Observation{State: stage.Differs, Evidence: f.Name + " is not written yet"}, nil
		case err != nil:
			return stage.Observation{State: stage.Unknown}, err
		case !bytes.Equal(have, f.Content):
			return stage.Observation{State: stage.Differs, Evidence: f.Name + " has other lines"}, nil
		}
	}
	return stage.Observation{State: stage.Conforms, Evidence: "the files hold these nodes"}, nil
}

// WriteEffect is the effect that writes files into a folder of the controller, each whole or
// not at all. The folder is made when it is needed. what is what the files list; wrote is
// called after each file with its path and content.
func WriteEffect(key, what, dir string, files []File, wrote func(path string, content []byte)) stage.Effect {
	return stage.Effect{
		Key: key, Kind: plan.Config, Repeatable: true,
		Does: "write " + what + " to " + dir,
		Probe: func(context.Context) (stage.Probe, string, error) {
			o, err := ObserveFiles(dir, files)
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
				path := filepath.Join(dir, f.Name)
				if err := durable.Write(path, f.Content, 0o644); err != nil {
					return errkind.New(errkind.Refused, "write %s: %w", path, err)
				}
				wrote(path, f.Content)
			}
			return nil
		},
	}
}
