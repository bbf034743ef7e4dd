// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/language"
)

// checkMounts looks at the file systems that the nodes of a role mount: each at a place of its
// own, where neither the system nor a data disk is, and with nothing in its options that is a
// secret or that would be read as another line of a unit's file.
func (l *loader) checkMounts(r *Role) {
	places := map[string]hcl.Range{}
	if r.Disks != nil {
		for _, f := range r.Disks.Data {
			places[f.Mount] = f.Decl
		}
	}
	for i, b := range l.bodies[r].Blocks("mount") {
		m := r.Mounts[i]
		if part := systemPart(m.Path); part != "" {
			l.diags.Add("role.mount", b.Named, "Mount where the system is", fmt.Sprintf("mount %q: %s belongs to the root file system. Mount it elsewhere, such as at /scratch or below /srv or /mnt.", m.Path, part)).In(r.Decl)
		}
		if first, taken := places[m.Path]; taken {
			l.diags.Add("role.mount", b.Named, "Two file systems in one place", fmt.Sprintf("mount %q of role %q is where the disk layout of its nodes has data.", m.Path, r.Name)).Also("the data block", first).In(r.Decl)
		}
		l.checkMountWords(b, m)
	}
}

// checkMountWords looks at the words of one mount block.
func (l *loader) checkMountWords(b *language.Body, m Mount) {
	plain := func(text, also string) bool {
		return strings.IndexFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(also, c) }) < 0
	}
	if b.Right("type") && m.Type != "" && strings.Trim(m.Type, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != "" {
		l.diags.Add("language.value", b.Range("type"), "Wrong value of type", fmt.Sprintf("%q is no type of a file system: it is a word as mount(8) takes it, such as \"nfs\" or \"lustre\".", m.Type)).In(b.Decl)
	}
	if b.Right("source") && !plain(m.Source, `"'\`) && strings.TrimSpace(m.Source) != "" {
		l.diags.Add("language.value", b.Range("source"), "Wrong value of source", fmt.Sprintf("%q is no source to mount: it has no spaces, quotes and backslashes, such as \"10.0.0.9:/export\" or \"mds1@o2ib:/scratch\".", m.Source)).In(b.Decl)
	}
	for i, o := range m.Options {
		l.checkMountOption(b, m, i, plain(o, `"'\,`))
	}
}

// secretOptions are those that hold a secret (mount.cifs(8), mount.ceph(8)).
var secretOptions = []string{"password", "pass", "password2", "secret"}

// checkMountOption looks at one option of a mount, which is plain or is none.
func (l *loader) checkMountOption(b *language.Body, m Mount, i int, plain bool) {
	name, _, _ := strings.Cut(m.Options[i], "=")
	switch {
	case name == "" || !plain:
		l.diags.Add("language.value", b.ElementRange("options", i), "Wrong value of options", fmt.Sprintf("%q is no option of a mount: each is an element of its own, without spaces, commas, quotes and backslashes, such as \"nconnect=8\".", m.Options[i])).In(b.Decl)
	case slices.Contains(secretOptions, strings.ToLower(name)):
		l.diags.Add("role.mount", b.ElementRange("options", i), "Secret in the options of a mount", fmt.Sprintf("Option %s of mount %q would be written into a file that everybody on the node can read. Name a file of the node that holds it, such as credentials=/etc/NAME (cifs) or secretfile=/etc/NAME (ceph).", name, m.Path)).In(b.Decl)
	}
}
