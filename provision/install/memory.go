// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/hub"
)

// bring is the write of a diskless node: its image into its memory.
func (s *Stage) bring(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	g, id, err := s.ensureAgent(ctx, run, n, st)
	if err != nil {
		return err
	}
	return s.load(ctx, run, n, g, id)
}

// load brings the image of a diskless node into the memory of the ramdisk that runs in this boot
// attempt, unless it is there. It erases nothing.
func (s *Stage) load(ctx context.Context, run stage.Run, n *inventory.Node, g hub.Grant, id wire.Identity) error {
	img, err := s.w.Images.Image(n.Image.Name)
	if err != nil {
		return err
	}
	if n.Serial != "" && id.Serial != n.Serial {
		return errkind.New(errkind.Mismatch, "the agent that answers is in serial %q, not %q", id.Serial, n.Serial).
			Do("Run `ironrail apply` again to identify the node anew.")
	}
	w, known, err := readFact(run, WriteFact, n.Name)
	if err != nil {
		return err
	}
	want := Written{Key: n.Name + "/" + g.Attempt + "/write", Image: img.Digest, Memory: true}
	same := known && w.Key == want.Key && w.Image == want.Image
	if same && w.Complete {
		return nil
	}
	if !same {
		if err := learnFact(ctx, run, WriteFact, n, want); err != nil {
			return err
		}
	}
	if err := s.fetchIntoMemory(ctx, run, n, img, &want); err != nil {
		return err
	}
	if err := learnFact(ctx, run, WriteFact, n, want); err != nil {
		return err
	}
	return s.phase(ctx, run, n, Verified, "image in memory")
}

// fetchIntoMemory has the agent fetch an image, as one journaled effect, and completes w.
func (s *Stage) fetchIntoMemory(ctx context.Context, run stage.Run, n *inventory.Node, img Image, w *Written) error {
	p := wire.WriteParams{ManifestURL: img.ManifestURL, BlobURL: img.BlobURL, Digest: img.Digest, PublicKey: img.PublicKey, Marker: w.Key, Memory: true}
	err := run.Effect(ctx, stage.Effect{Key: w.Key, Kind: plan.Config, Repeatable: true, Does: fmt.Sprintf("bring image %s into the memory of %s", img.Digest, n.Name),
		Probe: func(context.Context) (stage.Probe, string, error) {
			return stage.NotDone, "the agent fetches what is not in memory", nil
		},
		Do: func(ctx context.Context) error {
			out, err := s.do(ctx, run, n, wire.Write, w.Key, p)
			if err != nil {
				return err
			}
			return json.Unmarshal(out, &w.Result)
		}})
	w.Complete = err == nil
	if part, ok := errors.AsType[*wire.PartError](err); ok && part.Part != wire.PartDisk {
		return s.blameWrite(ctx, run, n, wire.Disk{}, err)
	}
	return err
}
