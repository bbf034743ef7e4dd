package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
)

// replacementKind is the kind of the state objects of replacements: a Replacement
// in JSON, by the name of its node. The format only grows.
const replacementKind = "replacement"

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

// swaps is the replacements that stand in for the site's files. It is safe for
// concurrent use; the nodes that it changes are written only when something
// changes.
type swaps struct {
	mu     sync.Mutex         // guards what follows
	files  map[string]Chassis // what the files say of nodes that were ever overlaid
	staged *Replacement       // of a rebuild that is not approved yet
	stand  []Replacement      // in force, by node
	spent  []Replacement      // that say nothing any more
}

// overlay puts the replacements of the state, and one that is staged, over the
// inventory. Everything that asks who a node is comes after it.
func (s *Site) overlay(ctx context.Context, r state.Reader) error {
	os, err := r.Objects(ctx, replacementKind)
	if err != nil {
		return err
	}
	var all []Replacement
	for _, o := range os {
		var x Replacement
		if err := json.Unmarshal(o.Value, &x); err != nil {
			return fmt.Errorf("state: object %s: %w", o.Key, err)
		}
		all = append(all, x)
	}
	s.swapped.mu.Lock()
	defer s.swapped.mu.Unlock()
	s.swapped.apply(s.Inv, all)
	return nil
}

// apply makes every node what the files and the replacements say. Called with mu
// held.
func (w *swaps) apply(inv *inventory.Inventory, all []Replacement) {
	if w.files == nil {
		w.files = map[string]Chassis{}
	}
	w.stand, w.spent = nil, nil
	want := map[string]Chassis{}
	for name, files := range w.files {
		want[name] = files
	}
	for _, r := range all {
		if w.staged != nil && w.staged.Node == r.Node {
			continue
		}
		w.one(inv, r, want)
	}
	if w.staged != nil {
		w.one(inv, *w.staged, want)
	}
	for name, c := range want {
		if n, ok := inv.Node(name); ok && chassisOf(n) != c {
			n.Serial, n.UUID, n.BootMAC = c.Serial, c.UUID, c.BootMAC
		}
	}
}

// one notes what one replacement makes of its node.
func (w *swaps) one(inv *inventory.Inventory, r Replacement, want map[string]Chassis) {
	n, ok := inv.Node(r.Node)
	if !ok {
		w.spent = append(w.spent, r)
		return
	}
	files, known := w.files[r.Node]
	if !known {
		files = chassisOf(n)
		w.files[r.Node] = files
	}
	now, stands := r.over(files)
	want[r.Node] = now
	if stands {
		w.stand = append(w.stand, r)
	} else {
		w.spent = append(w.spent, r)
	}
}

func chassisOf(n *inventory.Node) Chassis { return Chassis{n.Serial, n.UUID, n.BootMAC} }

// inFiles is who the site's files say that a node is.
func (s *Site) inFiles(n *inventory.Node) Chassis {
	s.swapped.mu.Lock()
	defer s.swapped.mu.Unlock()
	if files, ok := s.swapped.files[n.Name]; ok {
		return files
	}
	return chassisOf(n)
}

// moved are the boot MACs of replaced chassis, with the node that each is in.
func (s *Site) moved() map[addr.MAC]string {
	s.swapped.mu.Lock()
	defer s.swapped.mu.Unlock()
	m := map[addr.MAC]string{}
	for _, r := range s.swapped.stand {
		if n, ok := s.Inv.Node(r.Node); ok && !n.BootMAC.IsZero() {
			m[n.BootMAC] = r.Node
		}
	}
	return m
}

// Replaced lists the replacements that stand in for the site's files, by node.
func (s *Site) Replaced(ctx context.Context, r state.Reader) ([]Replacement, error) {
	if err := s.overlay(ctx, r); err != nil {
		return nil, err
	}
	s.swapped.mu.Lock()
	defer s.swapped.mu.Unlock()
	return append([]Replacement(nil), s.swapped.stand...), nil
}

// ReplacedWarnings say which nodes are not who the site's files say, and what to
// write there, after overlay.
func (s *Site) ReplacedWarnings() (list []string) {
	s.swapped.mu.Lock()
	defer s.swapped.mu.Unlock()
	for _, r := range s.swapped.stand {
		if n, ok := s.Inv.Node(r.Node); ok {
			list = append(list, r.warning(n, s.swapped.files[r.Node]))
		}
	}
	for _, r := range s.swapped.spent {
		files, ok := s.swapped.files[r.Node]
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
