// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// observeWrite answers from what was recorded: the image that the plan wants is
// on the disk when its write is complete and no replacement was asked for.
func (s *Stage) observeWrite(run stage.Run, n *inventory.Node, st plan.Step) (stage.Observation, error) {
	w, ok, err := readFact(run, WriteFact, n.Name)
	if err != nil || !ok {
		return stage.Observation{State: stage.Unknown}, err
	}
	at, open := s.w.Boots.Current(n.Name)
	if w.Complete && w.Image == s.digest[n.Image.Name] && open && w.Key == writeKey(at) {
		return stage.Observation{State: stage.Conforms, Evidence: "written and verified in this boot attempt"}, nil
	}
	return stage.Observation{State: stage.Unknown}, nil
}

// writeKey is the effect key of the write that a boot attempt was opened for.
func writeKey(at Attempt) string { return at.Node + "/" + at.ID + "/write" }

// write erases the disk, streams the image to it and reads it back, as one
// journaled effect. The agent finds out by the marker on the disk whether a write
// of this key is complete, so that doing it again is harmless.
func (s *Stage) write(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	g, id, err := s.ensureAgent(ctx, run, n, st)
	if err != nil {
		return err
	}
	img, err := s.w.Images.Image(n.Image.Name)
	if err != nil {
		return err
	}
	to, err := chosen(run, n)
	if err != nil {
		return err
	}
	if n.Serial != "" && id.Serial != n.Serial {
		return errkind.New(errkind.Mismatch, "the agent that answers is in serial %q, not %q", id.Serial, n.Serial).
			Do("Nothing was erased. Run `ironrail apply` again to identify the node anew.")
	}
	last, target, err := knownFor(run, n, st)
	if err != nil {
		return err
	}
	if err := target.shown(n, to); err != nil {
		return blameDisk(ctx, run, n, err)
	}
	w, err := s.intend(ctx, run, n, img, last.judge(n, to))
	if err != nil {
		return err
	}
	p := wire.WriteParams{Disk: to[0].Disk, ManifestURL: img.ManifestURL, BlobURL: img.BlobURL, Digest: img.Digest, PublicKey: img.PublicKey,
		AllowData: st.Action == plan.Replace && w.Ours, RootSize: rootSize(n), Marker: w.Key}
	if !n.Disks.Whole() {
		if p.Layout, err = layoutOf(n, w.mayErase(to), w.Key, st.Action == plan.Replace); err != nil {
			return err
		}
	}
	err = run.Effect(ctx, stage.Effect{Key: w.Key, Kind: plan.Erase, Repeatable: true,
		Does: fmt.Sprintf("erase %s of %s and write image %s", eraseWords(to), n.Name, img.Digest),
		Probe: func(ctx context.Context) (stage.Probe, string, error) {
			return s.probeWrite(ctx, run, n, g.Attempt, w.Key)
		},
		Do: func(ctx context.Context) error {
			out, err := s.do(ctx, run, n, wire.Write, w.Key, p)
			if err != nil {
				return err
			}
			return json.Unmarshal(out, &w.Result)
		}})
	if err != nil {
		return s.blameWrite(ctx, run, n, failedDisk(to, err), err)
	}
	w.Complete = true
	if err := learnFact(ctx, run, WriteFact, n, w); err != nil {
		return err
	}
	return s.phase(ctx, run, n, Verified, "disk verified")
}

// blameWrite turns a failed write into a finding about the part that the agent
// could tell: the disk, or the way that the image takes to the node.
func (s *Stage) blameWrite(ctx context.Context, run stage.Run, n *inventory.Node, d wire.Disk, err error) error {
	p, ok := errors.AsType[*wire.PartError](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	f := stage.Finding{Evidence: []string{err.Error()}, Action: errkind.Action(err)}
	part := ""
	switch p.Part {
	case wire.PartDisk:
		part = fmt.Sprintf("disk %s (%s %s)", d.Name, d.Model, d.Serial)
		f.Cause = "the disk cannot be written"
		f.Action = fmt.Sprintf("Look at the health of disk %s, serial %s, and replace it; nothing on it is a system now.", d.Name, d.Serial)
	case wire.PartChunk:
		part = "image stream to boot NIC " + n.BootMAC.String()
		f.Cause = "a chunk of the image comes corrupt"
		f.Action = fmt.Sprintf("Run `ironrail image verify`. If the image is good, its bytes are damaged on their way: look at the switches, cables and proxies between this controller and boot NIC %s, and at the memory of the node. Nodes behind the same switch whose images came through rule the controller and the switch out. `ironrail apply` brings it whole.", n.BootMAC)
	case wire.PartStream:
		part = "boot NIC " + n.BootMAC.String()
		f.Cause = "the image stream stopped: its bytes do not reach the node"
		f.Action = "Check the cable and the switch port of the boot NIC, and what stands between it and this controller (MTU, firewall). Nodes behind the same switch whose images came through rule the controller out."
	default:
		return err
	}
	f.Suspects = []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: part}}
	return errors.Join(run.Blame(ctx, f), err)
}

// intend records which write is about to be made. One that was begun with the
// same image and never completed goes on under its own key: its marker on the
// disk is ours. That the disk was the node's own is recorded before it is erased: a
// run that goes on later finds neither its marker nor its last install any more.
func (s *Stage) intend(ctx context.Context, run stage.Run, n *inventory.Node, img Image, to []LayoutDisk) (Written, error) {
	w, ok, err := readFact(run, WriteFact, n.Name)
	if err != nil {
		return w, err
	}
	on, layout := shownDisk(to[0].Disk), []LayoutDisk(nil)
	if !n.Disks.Whole() {
		for _, d := range to {
			layout = append(layout, LayoutDisk{d.Block, shownDisk(d.Disk), d.Ours})
		}
	}
	if ok && !w.Complete && w.Image == img.Digest && (w.Disk == nil || sameShown(*w.Disk, on)) && sameDisks(w.Disks, layout) {
		return w, nil
	}
	at, _ := s.w.Boots.Current(n.Name)
	w = Written{Key: writeKey(at), Image: img.Digest, Disk: &on, Ours: to[0].Ours, Disks: layout}
	return w, learnFact(ctx, run, WriteFact, n, w)
}

// judge says of each disk anew whether it is the node's own.
func (k lastInstall) judge(n *inventory.Node, to []LayoutDisk) []LayoutDisk {
	to = slices.Clone(to)
	for i := range to {
		to[i].Ours = k.ownsAs(n, to[i].Block, to[i].Disk)
	}
	return to
}

// chosen are the disks that the inspection chose.
func chosen(run factReader, n *inventory.Node) ([]LayoutDisk, error) {
	if !n.Disks.Whole() {
		all, ok, err := readFact(run, DisksFact, n.Name)
		if err != nil || !ok || len(all) == 0 {
			return nil, errkind.New(errkind.Internal, "no disks were chosen: %w", err)
		}
		return all, nil
	}
	d, ok, err := readFact(run, DiskFact, n.Name)
	if err != nil || !ok {
		return nil, errkind.New(errkind.Internal, "no disk was chosen: %w", err)
	}
	return []LayoutDisk{{Block: n.Disks.On, Disk: d}}, nil
}

// mayErase are disks with what was recorded of them before the first was erased: a run
// that goes on finds nothing of what lay on them.
func (w Written) mayErase(to []LayoutDisk) []LayoutDisk {
	to = slices.Clone(to)
	for i := range to {
		to[i].Ours = slices.ContainsFunc(w.Disks, func(d LayoutDisk) bool { return d.Ours && sameShown(d.Disk, to[i].Disk) })
	}
	return to
}

// eraseWords names the disks that are erased.
func eraseWords(to []LayoutDisk) string {
	var words []string
	for _, d := range to {
		words = append(words, fmt.Sprintf("%s (%s)", d.Disk.Name, d.Disk.Serial))
	}
	if len(words) == 1 {
		return "disk " + words[0]
	}
	return "disks " + strings.Join(words, ", ")
}

// failedDisk is the disk that an error of the agent names by its path, else the first.
func failedDisk(to []LayoutDisk, err error) wire.Disk {
	for _, d := range to {
		if d.Disk.Path != "" && strings.Contains(err.Error(), "disk "+d.Disk.Path+":") {
			return d.Disk
		}
	}
	return to[0].Disk
}

// probeWrite asks the agent for the marker of the write. The agent answers when it has
// ended what an earlier run asked it for, and tells meanwhile how far that is.
func (s *Stage) probeWrite(ctx context.Context, run stage.Run, n *inventory.Node, attempt, key string) (stage.Probe, string, error) {
	newQueued(run).emitProgress()
	hw, err := s.readHardware(ctx, run, attempt, n)
	if err != nil {
		return stage.Doubt, "", err
	}
	for _, d := range hw.Disks {
		if d.Marker == key {
			// A marker that stands for a complete write is found again by the
			// agent, which then reads the disk back and writes nothing.
			return stage.NotDone, "disk " + d.Name + " carries the marker of this write, state " + d.State, nil
		}
	}
	return stage.NotDone, "no disk carries the marker of this write", nil
}

// rootSize is what the root partition grows to.
func rootSize(n *inventory.Node) int64 {
	if n.Disks.Root.Size == 0 {
		return wire.RestOfDisk
	}
	return int64(n.Disks.Root.Size)
}

// do asks the node's agent for one task and tells its progress.
func (s *Stage) do(ctx context.Context, run stage.Run, n *inventory.Node, kind wire.TaskKind, key string, params any) (json.RawMessage, error) {
	b, err := json.Marshal(params)
	if err != nil {
		return nil, errkind.New(errkind.Internal, "task %s: %w", kind, err)
	}
	at, _ := s.w.Boots.Current(n.Name)
	out, err := s.w.Hub.Do(ctx, at.grant(), wire.Task{Key: key, Kind: kind, Params: b}, func(p wire.Progress) {
		if p.Key == key { // not what an earlier run asked for
			run.Emit(event.Event{Type: event.StepProgress, Text: joinNote(p.Phase, p.Note), Done: p.Done, Total: p.Total})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, s.blameConflict(ctx, run, n, err))
	}
	return out, nil
}

func joinNote(phase, note string) string {
	if note == "" {
		return phase
	}
	return phase + ": " + note
}

// newNonce makes the part of a key that no two tasks share.
func newNonce() string {
	var b [6]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	return hex.EncodeToString(b[:])
}
