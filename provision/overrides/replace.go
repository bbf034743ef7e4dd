// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// replacementKind is the kind of the state objects of replacements: a Replacement
// in JSON, by the name of its node. The format only grows.
const replacementKind = "replacement"

// ChassisReplaced is the record of a replacement in the journal.
const ChassisReplaced state.RecordKind = "chassis-replaced" // Replacement

// Chassis is who a node's chassis is. An empty field is not known.
type Chassis struct {
	Serial  string   `json:"serial,omitempty"`
	UUID    string   `json:"uuid,omitempty"` // SMBIOS, lower case
	BootMAC addr.MAC `json:"boot_mac,omitzero"`
}

// Replacement says that a node's chassis is another one than the site's files
// say: it was swapped at night, and the list that they are made from still has the
// old numbers. It stands in for the files until they have the new ones.
type Replacement struct {
	Node string `json:"node"`
	Chassis
	Was     Chassis   `json:"was"` // what the files said when it was made
	By      string    `json:"by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	At      time.Time `json:"at"`
	Learned []string  `json:"learned,omitempty"` // what nobody typed, and where it was seen
}

// over returns who the chassis is when the site's files say files, and whether
// the replacement still says anything that they do not. Files that name a third
// serial number were edited later than the replacement: they count.
func (r Replacement) over(files Chassis) (now Chassis, stands bool) {
	if files.Serial != r.Was.Serial && files.Serial != r.Serial {
		return files, false
	}
	now = files
	if files.Serial == r.Was.Serial {
		now.Serial = r.Serial
	}
	if files.UUID == r.Was.UUID {
		now.UUID = r.UUID // that of the old chassis is not the new one's, even where the new one is not known
	}
	if files.BootMAC == r.Was.BootMAC && !r.BootMAC.IsZero() {
		now.BootMAC = r.BootMAC
	}
	if now.Serial == files.Serial && now.BootMAC == files.BootMAC && (files.UUID == "" || now.UUID == files.UUID) {
		return files, false // a UUID that the files never gave is no reason
	}
	return now, true
}

// readReplacements reads the replacements of the state, and one that is requested
// instead of that of its node, into Replaced and Superseded. It returns who the
// replaced chassis are, by node, where that differs from the site's files.
func (d *Desired) readReplacements(ctx context.Context, r state.Reader, requested *Replacement) (map[string]Chassis, error) {
	all, err := readObjects[Replacement](ctx, r, replacementKind)
	if err != nil {
		return nil, err
	}
	if requested != nil {
		all[requested.Node] = *requested
	}
	changed := map[string]Chassis{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x := all[name]
		n, ok := d.Files.Node(name)
		if !ok {
			d.Superseded = append(d.Superseded, x)
			continue
		}
		now, stands := x.over(ChassisOf(n))
		if !stands {
			d.Superseded = append(d.Superseded, x)
			continue
		}
		d.Replaced = append(d.Replaced, x)
		if now != ChassisOf(n) {
			changed[name] = now
		}
	}
	return changed, nil
}

// ChassisOf is who the chassis of a node is.
func ChassisOf(n *inventory.Node) Chassis { return Chassis{n.Serial, n.UUID, n.BootMAC} }

// InFiles is who the site's files say that a node is.
func (d *Desired) InFiles(node string) Chassis {
	n, ok := d.Files.Node(node)
	if !ok {
		return Chassis{}
	}
	return ChassisOf(n)
}

// BootMACs are the boot MACs of replaced chassis, with the node that each is in.
func (d *Desired) BootMACs() map[addr.MAC]string {
	m := map[addr.MAC]string{}
	for _, r := range d.Replaced {
		if n, ok := d.Inv.Node(r.Node); ok && !n.BootMAC.IsZero() {
			m[n.BootMAC] = r.Node
		}
	}
	return m
}

// ChassisWarnings say which chassis are not those of the site's files, and what to write
// there.
func (d *Desired) ChassisWarnings() (list []string) {
	for _, r := range d.Replaced {
		if n, ok := d.Inv.Node(r.Node); ok {
			list = append(list, r.warning(n, d.InFiles(r.Node)))
		}
	}
	for _, r := range d.Superseded {
		files, ok := d.Files.Node(r.Node)
		if ok && files.Serial != r.Serial {
			list = append(list, fmt.Sprintf("%s was rebuilt with serial %s on %s, and the site's files have said %s since: they count", r.Node, r.Serial, r.At.UTC().Format(time.DateOnly), cmp.Or(files.Serial, "no serial")))
		}
	}
	return list
}

// warning says what the files have to say.
func (r Replacement) warning(n *inventory.Node, files Chassis) string {
	write := func(name, is, was string, at hcl.Range) string {
		if was == "" {
			return fmt.Sprintf("%s = %q", name, is)
		}
		return fmt.Sprintf("%s = %q (%s:%d says %s)", name, is, at.Filename, at.Start.Line, was)
	}
	var words []string
	if files.Serial != n.Serial {
		words = append(words, write("serial", n.Serial, files.Serial, n.Ranges.Serial))
	}
	switch {
	case n.UUID == "" && files.UUID != "":
		words = append(words, fmt.Sprintf("no uuid (%s:%d says %s)", n.Ranges.UUID.Filename, n.Ranges.UUID.Start.Line, files.UUID))
	case files.UUID != n.UUID && files.UUID != "":
		words = append(words, write("uuid", n.UUID, files.UUID, n.Ranges.UUID))
	}
	if files.BootMAC != n.BootMAC {
		was := ""
		if !files.BootMAC.IsZero() {
			was = files.BootMAC.String()
		}
		words = append(words, write("boot_mac", n.BootMAC.String(), was, n.Ranges.BootMAC))
	}
	why := r.Reason
	if r.By != "" {
		why = strings.TrimPrefix(why+", by "+r.By, ", ")
	}
	text := fmt.Sprintf("%s has serial %s since %s", r.Node, n.Serial, r.At.UTC().Format("2006-01-02 15:04 UTC"))
	if why != "" {
		text += " (" + why + ")"
	}
	return text + ", and the site's files have the chassis before it: write " + strings.Join(words, ", ") + " there"
}

// Put adds a replacement to a batch, with its record in the journal.
func (r Replacement) Put(b *state.Batch) error {
	put, err := state.PutOf(state.Key{Kind: replacementKind, Name: r.Node}, r)
	if err != nil {
		return err
	}
	b.Puts = append(b.Puts, put)
	b.Records = append(b.Records, state.Record{Kind: ChassisReplaced, Time: r.At, Subject: subject.OfNode(r.Node)}.With(r))
	return nil
}

// ForgetSuperseded forgets the replacements that the site's files have caught up with.
func (d *Desired) ForgetSuperseded(ctx context.Context, store state.Store, fence state.Fence) error {
	var parts []state.Batch
	for _, x := range d.Superseded {
		_, ok, err := store.Object(ctx, state.Key{Kind: replacementKind, Name: x.Node})
		if err != nil {
			return err
		}
		if ok {
			parts = append(parts, state.Batch{Puts: []state.Put{{Key: state.Key{Kind: replacementKind, Name: x.Node}, Want: state.Any}},
				Records: []state.Record{state.Record{Kind: state.Note, Time: time.Now().UTC(), Subject: subject.OfNode(x.Node)}.With("the site's files name the chassis now; what stood in for them is forgotten")}})
		}
	}
	return state.AppendParts(ctx, store, fence, parts...)
}

// inPlaceOf reports whether the replacement says something of a node, be it laid
// over the inventory already or not. Files that name a third serial number count,
// and so does what they say once they have caught up.
func (r Replacement) inPlaceOf(n *inventory.Node) bool {
	now, stands := r.over(ChassisOf(n))
	return stands || now.Serial == r.Serial && r.Was.Serial != r.Serial
}

func (r Replacement) note() string {
	text := fmt.Sprintf("its chassis was replaced on %s: serial %s, before it %s", r.At.UTC().Format(time.DateOnly),
		cmp.Or(r.Serial, "not known"), cmp.Or(r.Was.Serial, "none in the files"))
	if why := strings.Trim(r.Reason+", by "+r.By, ", "); r.By != "" {
		return text + " (" + why + ")"
	} else if r.Reason != "" {
		return text + " (" + r.Reason + ")"
	}
	return text
}
