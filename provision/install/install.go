// SPDX-License-Identifier: Apache-2.0

// Package install is the stage that takes a node from power-off to an operating
// system that answers: netboot, identify, inspect, write the image, write the
// host's settings, boot from disk. Nothing is erased before the identity gate
// has passed.
//
// Each step begins by making sure that the agent of an open boot attempt is
// there, so that a step can be resumed after any interruption; nothing is
// powered, erased or written but through a journaled effect.
package install

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/modalias"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/netboot"
)

// The stage's name and the version of its fingerprints.
const (
	Name    = "install"
	Version = 1
)

// The actions of the stage, as they stand in step ids: n1/install.write.
const (
	Netboot   = "netboot"
	Inspect   = "inspect"
	Write     = "write"
	Configure = "configure"
	Boot      = "boot"
	Firmware  = "firmware" // of nodes whose ramdisk starts the installed system
)

// What the stage learns about a node.
const (
	AttemptFact  = fact.Name[Attempt]("install.attempt")     // the last boot attempt
	IdentityFact = fact.Name[wire.Identity]("node.identity") // as seen in the ramdisk
	HardwareFact = fact.Name[wire.Hardware]("node.hardware") // as inspected
	DiskFact     = fact.Name[wire.Disk]("install.disk")      // the disk that the layout chose
	WriteFact    = fact.Name[Written]("install.written")     // the last image write
	HostKeyFact  = fact.Name[string]("ssh.host_key")         // authorized_keys form
	SystemFact   = fact.Name[System]("node.system")          // what booted from disk
)

// Written is the last write of an image to a node's disk.
type Written struct {
	Key      string           `json:"key"`   // effect key, and marker on the disk
	Image    string           `json:"image"` // manifest digest
	Complete bool             `json:"complete"`
	Result   wire.WriteResult `json:"result"`
	// Disk is the one that was erased for it; nil in a state of an ironrail that did
	// not record it. Ours: what lay on it before was the node's own system, or the
	// operator named the disk.
	Disk *wire.Disk `json:"disk,omitempty"`
	Ours bool       `json:"ours,omitempty"`
	// Disks are all that were erased, Disk the first of them, where a layout was made in
	// place of the image's own disk.
	Disks []LayoutDisk `json:"disks,omitempty"`
	// Memory: the image was brought into memory. No disk was erased, and none is known to be the
	// node's own any more.
	Memory bool `json:"memory,omitempty"`
}

// System is what a node runs after the boot from disk.
type System struct {
	Kernel string `json:"kernel"`
	BootID string `json:"boot_id"`
	Marker string `json:"marker"` // of the write that this system came from
	// Root is the disk that it runs from; nil where the node cannot tell.
	Root *wire.Disk `json:"root,omitempty"`
	// Roots are those disks where they are several, and Arrays those of md that run.
	Roots  []wire.Disk  `json:"roots,omitempty"`
	Arrays []wire.Array `json:"arrays,omitempty"`
	// BootOrder is that of the firmware, with the entry that started this system; nil
	// where the node cannot tell.
	BootOrder *wire.BootOrder `json:"boot_order,omitempty"`
	// SecureBoot is what firmware and kernel show of it; nil where they do not.
	SecureBoot *wire.SecureBoot `json:"secure_boot,omitempty"`
}

// Control is a node's BMC.
type Control interface {
	bmc.Power
	bmc.BootDevice
}

// Image is what a node fetches of one image.
type Image struct {
	Digest      string // of the manifest
	ManifestURL string
	BlobURL     string
	PublicKey   string // base64 ed25519, of the manifest's signature
	// Drivers is what the image has drivers for; nil: the image does not say, since an
	// older version built it.
	Drivers func() (*modalias.List, error)
	// Initrd is who makes the initrd, as manifest.Manifest has it; nil: it is on the disk.
	Initrd func() (string, error)
}

// Images are the built images by the name of their block.
type Images interface {
	Image(name string) (Image, error)
	// Verify reads the whole image and compares it with its manifest, and that
	// with the digest that the site pins.
	Verify(ctx context.Context, name string) error
}

// Dependencies is what the stage reaches.
type Dependencies struct {
	BMC      func(ctx context.Context, node string) (Control, error)
	Hub      *hub.Hub
	Boots    *Boots
	Images   Images
	Nodes    onnode.Nodes
	Evidence func(node string, since time.Time) []BootEvent      // what the boot services saw, oldest first
	Runs     func(ctx context.Context, n *inventory.Node) string // what shows that a system runs on a node; "": nothing does
	Restored bool                                                // the state was put back from a copy: it may have forgotten nodes
	SSHKey   string                                              // authorized_keys form, of the controller
	Signer   *modsign.Certificate                                // of kernel modules that are no distribution's; nil: none is signed
	// BootNetwork tells of other DHCP servers; nil: they are not looked for.
	BootNetwork func() BootNetwork
	// OtherOwner returns the MAC that answers for a client's address when it is none of
	// the client's. Nil: nobody knows.
	OtherOwner func(netboot.Client) (addr.MAC, bool)
	// Printed returns the last lines that a node's console has printed since the step that is under
	// way began, oldest first, escaped, and how many that were; nil: no console is read.
	Printed func(node string) (lines []string, ever int)
	// Type copies what a node prints on its serial console to a writer until ctx ends, and types
	// what comes from keys; up is called each time that the console is open. Nil: no console
	// can be typed at.
	Type func(ctx context.Context, node string, to io.Writer, keys <-chan string, up func()) error
}

// Stage is the install stage. It is safe for concurrent use.
type Stage struct {
	inv    *inventory.Inventory
	digest map[string]string // image block -> manifest digest that a plan writes
	w      Dependencies
}

// New makes the stage. digest holds the manifest digest of every image that is
// pinned or built; World may be empty when only Plan is called.
func New(inv *inventory.Inventory, digest map[string]string, w Dependencies) *Stage {
	return &Stage{inv: inv, digest: digest, w: w}
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return Name }

// Version implements stage.Stage.
func (s *Stage) Version() int { return Version }

// StepOf returns the id of a node's step.
func StepOf(node, action string) plan.StepID {
	return plan.StepID(node + "/" + Name + "." + action)
}

// PinMark stands in the name of an image that nodes are pinned to, after the name of
// its block: their reinstallation is decided by the digest, not by that name.
const PinMark = "~"

// ImageStep returns the id of the check of an image.
func ImageStep(image string) plan.StepID { return plan.StepID("site/image." + image) }

// Check implements stage.Checker.
func (s *Stage) Check() (diags hcl.Diagnostics) {
	for _, n := range s.inv.Nodes {
		if !n.Retired && n.Image != nil {
			diags = append(diags, s.installable(n)...)
		}
	}
	return diags
}

// Plan implements stage.Stage: one check for each image, five steps for each node, and one
// more for one whose ramdisk starts the installed system, and for one whose certificate is
// enrolled at its console.
func (s *Stage) Plan(view stage.View) ([]plan.Step, hcl.Diagnostics) {
	steps := make([]plan.Step, 0, 5*len(s.inv.Nodes)+len(s.inv.Images))
	var diags hcl.Diagnostics
	checked, inrush, same := map[string]bool{}, power.NewInrush(s.inv), shared{}
	for _, n := range s.inv.Nodes {
		if n.Retired {
			w, _, err := readFact(view, WriteFact, n.Name)
			if err != nil {
				return nil, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Node of which the state cannot be read", Detail: err.Error(), Subject: n.Decl.Ptr()})
			}
			steps = append(steps, s.retireSteps(n, w.Memory)...)
			continue
		}
		if n.Image == nil {
			continue // a role without an image is powered and cabled, not installed
		}
		if d := s.installable(n); d.HasErrors() {
			diags = append(diags, d...)
			continue
		}
		if !checked[n.Image.Name] {
			checked[n.Image.Name] = true
			steps = append(steps, s.imageStep(n.Image))
		}
		steps = s.nodeSteps(steps, n, inrush, same)
		if provesFirmware(n) {
			_, known := view.Fact(FirmwareFact.Of(subject.OfNode(n.Name)))
			steps = append(steps, firmwareStep(n, known))
		}
	}
	return steps, diags
}

// Observe implements stage.Stage.
func (s *Stage) Observe(ctx context.Context, run stage.Run, st plan.Step) (stage.Observation, error) {
	if st.Subject.Kind != subject.Node {
		return stage.Observation{}, nil
	}
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return stage.Observation{}, err
	}
	switch actionOf(st) {
	case Write:
		return s.observeWrite(run, n, st)
	case Boot:
		return s.observeBoot(ctx, run, n)
	case Firmware:
		return s.observeFirmware(ctx, run, n)
	}
	return stage.Observation{State: stage.Unknown}, nil
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	if st.Subject.Kind != subject.Node {
		return s.w.Images.Verify(ctx, imageOf(st))
	}
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return err
	}
	switch actionOf(st) {
	case Netboot:
		_, _, err = s.ensureAgent(ctx, run, n, st)
		return err
	case MOK:
		return s.enrolMOK(ctx, run, n, st)
	case Inspect:
		return s.inspect(ctx, run, n, st)
	case Write:
		if n.Diskless() {
			return s.bring(ctx, run, n, st)
		}
		return s.write(ctx, run, n, st)
	case Configure:
		return s.configure(ctx, run, n, st)
	case Boot:
		return s.boot(ctx, run, n, st)
	case Firmware:
		return s.proveFirmware(ctx, run, n, st)
	case Leave:
		_, _, err = s.ensureAgent(ctx, run, n, st)
		return err
	case Wipe:
		return s.wipe(ctx, run, n, st)
	case Off:
		return s.off(ctx, run, n)
	}
	return errkind.New(errkind.Internal, "install has no action %s", st.ID)
}

// factReader is what knows facts: a run, or what a plan is made from.
type factReader interface {
	Fact(fact.Key) (fact.Fact, bool)
}

// readFact reads a typed fact of a node; false when it was never learned.
func readFact[T any](run factReader, name fact.Name[T], node string) (v T, ok bool, err error) {
	f, ok := run.Fact(name.Of(subject.OfNode(node)))
	if !ok {
		return v, false, nil
	}
	v, err = name.Get(f)
	return v, err == nil, err
}

// learnFact records a typed fact of a node, bound to its serial.
func learnFact[T any](ctx context.Context, run stage.Run, name fact.Name[T], n *inventory.Node, v T) error {
	f, err := name.New(subject.OfNode(n.Name), v, n.Serial)
	if err != nil {
		return err
	}
	if err := run.Learn(ctx, f); err != nil {
		return fmt.Errorf("record %s: %w", f.Key, err)
	}
	return nil
}
