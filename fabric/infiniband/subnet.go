// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
)

// Subnet is one fabric with the host of its subnet manager.
type Subnet struct {
	Inv     *inventory.Inventory
	Fabric  *inventory.Fabric
	Host    Host
	Folder  string      // of opensm's files; empty: DefaultFolder
	Standby int         // place of the host in run_on, from 0: the master
	Clock   clock.Clock // nil: clock.Wall
}

func (s *Subnet) folder() string {
	if s.Folder == "" {
		return DefaultFolder
	}
	return s.Folder
}

func (s *Subnet) clock() clock.Clock {
	if s.Clock == nil {
		return clock.Wall{}
	}
	return s.Clock
}

// Sweep looks at the fabric. It needs no subnet manager.
func (s *Subnet) Sweep(ctx context.Context) (*ibnetdiscover.Topology, error) {
	out, err := runDiagnostic(ctx, s.Host, "ibnetdiscover")
	if err != nil {
		return nil, fmt.Errorf("fabric %s: %w", s.Fabric.Name, err)
	}
	t, problems, err := ibnetdiscover.Parse(out)
	switch {
	case err != nil:
		return nil, errkind.New(errkind.Internal, "fabric %s: ibnetdiscover is not understood: %w", s.Fabric.Name, err)
	case len(problems) > 0:
		return nil, errkind.New(errkind.Invalid, "fabric %s: the sweep is not whole: %s", s.Fabric.Name, problems[0].Text).Do("Run ibnetdiscover on the controller and see what it says about this device.")
	}
	return t, nil
}

// Plugs are members as the comparison of cables takes them.
func Plugs(members []Member) cabling.Known {
	known := make(cabling.Known, len(members))
	for _, m := range members {
		known[m.GUID] = cabling.Plug{Node: m.Node, NIC: m.NIC, Port: m.Port}
	}
	return known
}

// Files are those of this subnet manager, with all that a sweep says about who is
// who. A file that opensm would misunderstand is an error.
func (s *Subnet) Files(members []Member, t *ibnetdiscover.Topology) ([]File, error) {
	k := Known{Members: members}
	if t != nil {
		k.Switches = cabling.CompareSweep(s.Inv, s.Fabric, Plugs(members), t).Switches
	}
	files := Render(s.Inv, s.Fabric, k, s.folder(), s.Standby)
	for _, f := range files {
		if f.Name != partitionsFile {
			continue
		}
		if wrong := lintPartitions(f.Content, nil); len(wrong) > 0 {
			return nil, errkind.New(errkind.Internal, "fabric %s: %s: %s", s.Fabric.Name, f.Name, wrong[0])
		}
	}
	return files, nil
}

// Differing lists the files that the host has otherwise, or not at all.
func (s *Subnet) Differing(ctx context.Context, files []File) ([]File, error) {
	var list []File
	for _, f := range files {
		have, err := s.Host.Read(ctx, path.Join(s.folder(), f.Name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || !bytes.Equal(have, f.Content) {
			list = append(list, f)
		}
	}
	return list, nil
}

// Bounds of a load: opensm sweeps 8,832 devices in 13 s.
const (
	loadTimeout = 3 * time.Minute
	pollEvery   = 500 * time.Millisecond
)

// Load writes the files that differ, makes opensm read them, and waits until it
// says that the subnet is up. What it says against them is an error, though it
// goes on.
func (s *Subnet) Load(ctx context.Context, files []File) error {
	differ, err := s.Differing(ctx, files)
	if err != nil {
		return err
	}
	for _, f := range differ {
		if err := s.Host.Write(ctx, path.Join(s.folder(), f.Name), f.Content); err != nil {
			return err
		}
	}
	restart := slices.ContainsFunc(differ, func(f File) bool { return f.Restart })
	_, mark, err := s.Host.Log(ctx, fromEnd)
	if err != nil {
		return err
	}
	if err := s.Host.Reload(ctx, restart); err != nil {
		return err
	}
	return s.await(ctx, mark)
}

// await waits for the end of the sweep that a load began.
func (s *Subnet) await(ctx context.Context, mark int64) error {
	ctx, cancel := s.clock().WithTimeout(ctx, loadTimeout)
	defer cancel()
	for {
		text, _, err := s.Host.Log(ctx, mark)
		if err != nil {
			return err
		}
		l := readLog(text)
		switch {
		case len(l.Problems) > 0:
			return errkind.New(errkind.Refused, "fabric %s: opensm does not take its files: %s", s.Fabric.Name, l.Problems[0]).
				Do(fmt.Sprintf("Look at the files in %s: opensm runs on without what it could not read, and that can be all partitions.", s.folder()))
		case l.Up || l.Standby:
			return nil
		}
		if s.clock().Sleep(ctx, pollEvery) != nil {
			return errkind.New(errkind.Timeout, "fabric %s: opensm has not ended a sweep within %s", s.Fabric.Name, loadTimeout).Do("See opensm's log on the controller.")
		}
	}
}

// routed is the engine that routed last. opensm may have been running for long, so
// that all of its log counts.
func (s *Subnet) routed(ctx context.Context) (string, error) {
	text, _, err := s.Host.Log(ctx, 0)
	return readLog(text).Engine, err
}

// Verify reads back what a loaded subnet manager really does: that there is a
// master, which engine routed, and the P_Keys of every port that the sweep finds.
// It returns differences in words, each with node, rail and port.
func (s *Subnet) Verify(ctx context.Context, members []Member, t *ibnetdiscover.Topology) (wrong []string, err error) {
	m, silent, err := s.master(ctx)
	if err != nil {
		return nil, fmt.Errorf("fabric %s: %w", s.Fabric.Name, err)
	}
	if silent != "" { // routes and P_Keys are as the last one left them
		return []string{silent}, nil
	}
	if m.state != isMaster {
		wrong = append(wrong, fmt.Sprintf("the subnet manager of the fabric is in state %s", m.state))
	}
	engine, err := s.routed(ctx)
	if err != nil {
		return nil, err
	}
	if want := RoutingEngines(s.Inv, s.Fabric); engine != "" && engine != want[0] {
		wrong = append(wrong, fmt.Sprintf("routes are those of engine %q, and %q was asked for first", engine, want[0]))
	}
	keys, err := s.pkeys(ctx, members, t)
	if err != nil {
		return nil, err
	}
	return append(wrong, keys...), nil
}

// joinWords joins differences for one line.
func joinWords(list []string) string {
	const most = 3
	if len(list) > most {
		return fmt.Sprintf("%s, and %d more", strings.Join(list[:most], "; "), len(list)-most)
	}
	return strings.Join(list, "; ")
}
