// SPDX-License-Identifier: Apache-2.0

// Package diskless is the kind "diskless": root file systems that nodes keep in memory. They are made
// as images of their distribution are, and are a squashfs in the place of a disk.
package diskless

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/rhel"
	"github.com/ironrail/ironrail/images/ubuntu"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Kind is the kind "diskless". It implements images.Kind.
type Kind struct{}

// Name implements images.Kind.
func (Kind) Name() string { return inventory.KindDiskless }

// of is the kind that makes the root file system.
func of(i *inventory.Image) images.Kind {
	switch i.OS {
	case distribution.Ubuntu:
		return ubuntu.Kind{}
	case distribution.RHEL:
		return rhel.Kind{}
	}
	return debian.Kind{}
}

// Supports implements images.Kind.
func (Kind) Supports(i *inventory.Image) error {
	switch {
	case i.Arch == inventory.ARM64:
		return errkind.New(errkind.Unsupported, "images of kind diskless are made for %s; image %q is of %s, on which no root was kept in memory yet. Nodes of %[3]s take images of kind debian, on a disk", inventory.AMD64, i.Name, i.Arch)
	case len(i.Storage) > 0:
		return errkind.New(errkind.Unsupported, "image %q is of kind diskless: it is kept in memory, and a disk layout takes another", i.Name)
	}
	return of(i).Supports(i)
}

// Recipe implements images.Kind.
func (Kind) Recipe(i *inventory.Image, site string) images.Recipe { return of(i).Recipe(i, site) }

// The checks of what a block says, of every kind of image, and of what its drivers would need.
const (
	signatureCheck = "image.signature"
	memoryCheck    = "image.diskless"
)

// Check looks whether a block says where its packages come from in the form that its system takes, and
// whether the drivers of its nodes have modules without a build on the node. One that names no repository
// is a warning: a site can be designed and rehearsed before it has a mirror.
func Check(inv *inventory.Inventory, b inventory.Block) (found diag.List) {
	for _, i := range inv.Images {
		if i.Name != b.Name || i.Kind != b.Kind || (Kind{}).Supports(i) != nil {
			continue
		}
		checkForm(i, &found)
		checkDrivers(inv, i, &found)
		err := Kind{}.Recipe(i, "").Check()
		if err == nil || i.OS == distribution.Debian || len(found) > 0 {
			continue
		}
		text := err.Error()
		d := found.Add(signatureCheck, i.Place("repository"), "Image that cannot be built", fmt.Sprintf("%s%s. %s", strings.ToUpper(text[:1]), text[1:], errkind.Action(err))).In(i.Decl)
		if i.Archive.URL == "" && len(i.Repositories) == 0 {
			d.Warn()
		}
	}
	return found
}

// checkForm refuses what another system than that of the block takes.
func checkForm(i *inventory.Image, found *diag.List) {
	add := func(attribute, summary, format string, args ...any) {
		found.Add(memoryCheck, i.Place(attribute), summary, fmt.Sprintf(format, args...)).In(i.Decl)
	}
	f, _ := distribution.FamilyOf(i)
	switch rpm := f.Manager == distribution.Dnf; {
	case rpm && i.Archive.URL != "":
		add("repository", "Repository without a name", "Image %q has os = %q, whose packages come from several repositories of dnf. Write each with a name: repository \"baseos\" { url = \"...\" key = file(\"...\") }.", i.Name, i.OS)
	case !rpm && len(i.Repositories) > 0:
		add("repository", "Repository with a name", "Image %q has os = %q, whose packages come from one archive of apt. Write repository { url = \"...\" key = file(\"...\") }, without a name; named ones are of os = \"rhel\".", i.Name, i.OS)
	case i.OS == distribution.Debian && i.Archive.URL != "":
		add("repository", "Repository of Debian", "Image %q has os = \"debian\", whose packages come from Debian's own archive. Take the block out.", i.Name)
	}
	if i.CryptoPolicy != "" && f.Manager != distribution.Dnf {
		add("crypto_policy", "Crypto policy of another system", "Image %q has os = %q, and crypto policies are of os = \"rhel\". Take crypto_policy out.", i.Name, i.OS)
	}
}

// checkDrivers refuses drivers whose modules would be built on the node at each start: for systems of dnf
// nothing builds them on the controller.
func checkDrivers(inv *inventory.Inventory, i *inventory.Image, found *diag.List) {
	f, _ := distribution.FamilyOf(i)
	if f.Manager != distribution.Dnf {
		return
	}
	reported := map[*inventory.Driver]bool{}
	for _, n := range inv.Nodes {
		if n.Image != i {
			continue
		}
		for _, d := range n.Drivers {
			if reported[d] || d.Kind != "rocm" && (d.Kind != "cuda" || d.True("precompiled")) {
				continue
			}
			reported[d] = true
			found.Add(memoryCheck, d.Decl, "Module that is built at each start", fmt.Sprintf(
				"Driver %q of node %q builds its kernel module on the node, and image %q is kept in memory: each start would build it again, with a compiler in memory. For systems of RHEL no module is built on the controller. Write precompiled = true in a driver of kind cuda, or take an image of os = \"debian\" or \"ubuntu\", or one on a disk.", d.Name, n.Name, i.Name)).
				Also("the image, which is kept in memory", i.Decl).In(d.Decl).Of(n.Name)
		}
	}
}
