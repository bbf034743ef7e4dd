// SPDX-License-Identifier: Apache-2.0

// Package wipe makes disks blank before a node leaves its site: what stands on
// them is discarded where the disk can do that, and both ends, and both ends of
// every partition, are zeroed, so that no partition table, file system, array or
// volume group is found any more.
//
// A disk that does not discard is zeroed wherever a look at it comes to as well (see
// disk.Places), so that it counts as blank.
//
// It is no certified sanitisation (NIST SP 800-88): a disk that does not discard
// keeps what lies between, and neither NVMe Sanitize nor ATA Secure Erase is used.
package wipe

import (
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// What is zeroed at either end, in bytes.
const (
	diskEnd      = 64 << 20
	partitionEnd = 4 << 20
	step         = 8 << 20 // between two looks at ctx
)

// Wiper wipes disks, one after another.
type Wiper struct {
	Find     func(wire.Disk) (wire.Disk, error) // the disk as it is now, or Mismatch; required
	Open     disk.Opener                        // nil: disk.Open
	Progress func(wire.Progress)                // nil: nobody listens
}

// Run wipes the disks of p. It may be called again after it was cut off anywhere.
// All disks are found before the first is touched.
func (w Wiper) Run(ctx context.Context, p wire.WipeParams) (wire.WipeResult, error) {
	var res wire.WipeResult
	if len(p.Disks) == 0 {
		return res, errkind.New(errkind.Internal, "parameters of the wipe: no disk is named")
	}
	var total int64
	for _, d := range p.Disks {
		if _, err := w.Find(d); err != nil {
			return res, err
		}
		total += d.Size
	}
	var done int64
	for i, d := range p.Disks {
		w.reportProgress(wire.Progress{Phase: "wipe " + d.Name, Done: done, Total: total})
		one, err := w.disk(ctx, d)
		if err != nil {
			err = fmt.Errorf("disk %s: %w", d.Path, &wire.PartError{Part: wire.PartDisk, Err: err})
			if i > 0 {
				err = errkind.Begun(err) // the disks before it are wiped
			}
			return res, err
		}
		res.Disks = append(res.Disks, one)
		done += d.Size
	}
	w.reportProgress(wire.Progress{Phase: "wipe", Done: done, Total: total})
	return res, nil
}

func (w Wiper) reportProgress(p wire.Progress) {
	if w.Progress != nil {
		w.Progress(p)
	}
}

// disk wipes one disk and reads back that nothing is found on it.
func (w Wiper) disk(ctx context.Context, d wire.Disk) (out wire.Wiped, err error) {
	began, touched := time.Now(), false
	defer func() {
		if touched {
			err = errkind.Begun(err)
		}
	}()
	open := w.Open
	if open == nil {
		open = disk.Open
	}
	dev, err := open(d.Path, disk.Exclusive)
	if err != nil {
		return out, err
	}
	defer dev.Close()
	out = wire.Wiped{Name: d.Name, Serial: d.Serial, Size: dev.Size()}
	// The table is read before the first byte goes: it says where file systems are.
	spans := ends(dev)
	touched = true
	if t, ok := dev.(disk.Discarder); ok {
		if err := t.TryDiscard(0, dev.Size()); err != nil {
			out.Note = fmt.Sprintf("the disk does not discard (%v): what lies between the ends is still there", err)
		} else {
			out.Discarded = true
		}
	}
	for _, s := range spans {
		if err := zero(ctx, dev, s); err != nil {
			return out, err
		}
		out.Zeroed += s[1] - s[0]
	}
	left, err := look(dev)
	if err == nil && left != "" { // between the ends, of a disk that did not discard
		for _, s := range disk.Places(dev.Size()) {
			if err := zero(ctx, dev, [2]int64{s.Off, s.Off + s.Length}); err != nil {
				return out, err
			}
			out.Zeroed += s.Length
		}
		left, err = look(dev)
	}
	if err != nil {
		return out, err
	}
	if left != "" {
		return out, errkind.New(errkind.Mismatch, "it was wiped, and reads as: %s", left).
			Do("The disk does not keep what is written: take it out and destroy it by your own rules.")
	}
	if err := dev.Reread(); err != nil {
		return out, err
	}
	out.Seconds = time.Since(began).Seconds()
	return out, nil
}

// look says what is found on the disk, read from the disk and not from a cache.
func look(dev disk.Device) (string, error) {
	if err := dev.Forget(); err != nil {
		return "", err
	}
	return disk.Probe(dev, dev.Size()), nil
}

// ends are what is zeroed first: both ends of every partition that a table has, then
// both ends of the disk. The tables go last, so that a wipe that was cut off finds
// the partitions again.
func ends(dev disk.Device) (spans [][2]int64) {
	size := dev.Size()
	clip := func(from, to int64) {
		if from, to = max(from, 0), min(to, size); from < to {
			spans = append(spans, [2]int64{from, to})
		}
	}
	if table, err := gpt.Read(dev, size); err == nil {
		for _, p := range table.Partitions() {
			from, to := p.Offset(), p.Offset()+p.Size()
			clip(from, min(from+partitionEnd, to))
			clip(max(to-partitionEnd, from), to)
		}
	}
	clip(size-diskEnd, size)
	clip(0, diskEnd)
	return spans
}

// zero zeroes a range in steps.
func zero(ctx context.Context, dev disk.Device, s [2]int64) error {
	for from := s[0]; from < s[1]; from += step {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := dev.Zero(from, min(step, s[1]-from)); err != nil {
			return err
		}
	}
	return nil
}
