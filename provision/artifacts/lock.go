// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/images/kinds"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/lock"
)

// LockOptions are the operator's options for the lock file. The zero value only
// adds what is missing.
type LockOptions struct {
	Upgrade bool     // take what is new, and give other addresses to entries that cannot be
	Names   []string // of fabrics, images and drivers to upgrade; none: all
	Prune   bool     // take out what is there for things that are gone
}

// upgrades reports whether the thing of that name is to be upgraded.
func (o LockOptions) upgrades(names ...string) bool {
	if !o.Upgrade || len(o.Names) == 0 {
		return o.Upgrade
	}
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(o.Names, n) })
}

// LockAction is what happens to a record of the lock file.
type LockAction string

// The actions.
const (
	LockAdd    LockAction = "add"
	LockChange LockAction = "change"
	LockMove   LockAction = "move" // to the name that its owner has now
	LockRemove LockAction = "remove"
)

// LockStep is one change of the lock file.
type LockStep struct {
	Action LockAction `json:"action"`
	Record string     `json:"record"`         // "address", "image", "closure"
	Of     string     `json:"of"`             // fabric, image, or driver
	Name   string     `json:"name,omitempty"` // owner of an address, image of a closure
	Was    string     `json:"was,omitempty"`
	Now    string     `json:"now,omitempty"`
}

// LockUpdate is the lock file as it should be, and how that differs from the one
// that is there. Notes are what an operator should know and nothing changes.
type LockUpdate struct {
	Lock  *lock.Lock
	Steps []LockStep
	Notes []string
}

// Relock computes the lock file, of an inventory as it was loaded: what is locked is what
// the site's files say, not what a rollback holds. links are its addresses. It writes
// nothing, and reads of the world only the image store and the repositories.
func (a Artifacts) Relock(links []*roce.Links, o LockOptions) (LockUpdate, error) {
	if a.inv.Lock == nil {
		return LockUpdate{}, errkind.New(errkind.Internal, "the lock file of the site was not read")
	}
	for _, name := range o.Names {
		if err := a.lockable(name); err != nil {
			return LockUpdate{}, err
		}
	}
	u := LockUpdate{Lock: &lock.Lock{}}
	u.addresses(a.inv, links, o)
	if err := a.relockImages(&u, o); err != nil {
		return u, err
	}
	err := a.relockPackages(&u, o)
	return u, err
}

// lockable refuses a name that the lock file can have nothing of.
func (a Artifacts) lockable(name string) error {
	var all []string
	for _, f := range a.inv.Fabrics {
		all = append(all, f.Name)
	}
	for _, i := range a.inv.Images {
		all = append(all, i.Name)
	}
	for _, d := range a.inv.Drivers {
		all = append(all, d.Name)
	}
	if slices.Contains(all, name) {
		return nil
	}
	slices.Sort(all)
	return errkind.New(errkind.Refused, "%q is no fabric, image or driver of this site", name).
		Do("Name one of " + strings.Join(slices.Compact(all), ", ") + ", or none for all.")
}

// addresses takes over the addresses of links and switches.
func (u *LockUpdate) addresses(inv *inventory.Inventory, links []*roce.Links, o LockOptions) {
	u.Lock.Addresses = make([]lock.Address, 0, len(inv.Lock.Addresses))
	allocated := map[string]bool{}
	for _, l := range links {
		allocated[l.Fabric.Name] = true
		u.fabric(l, o)
	}
	for _, a := range inv.Lock.Addresses {
		if !allocated[a.Fabric] {
			u.stale(a, o)
		}
	}
}

// fabric takes over the addresses of one fabric.
func (u *LockUpdate) fabric(l *roce.Links, o LockOptions) {
	of, got := l.Fabric.Name, l.Allocation
	replaced := map[string]lock.Conflict{}
	for _, c := range got.Replaced {
		replaced[c.Owner] = c
	}
	fresh := make(map[int]bool, len(got.Fresh))
	for _, i := range got.Fresh {
		fresh[i] = true
	}
	for i, w := range l.Wants {
		now := got.Prefixes[i]
		c, conflict := replaced[w.Owner]
		switch {
		case conflict && !o.upgrades(of):
			c.Entry.Owner = w.Owner
			u.Lock.Addresses = append(u.Lock.Addresses, c.Entry)
			continue
		case !now.IsValid():
			continue // check has said that there is no room
		case conflict:
			u.step(LockChange, "address", of, w.Owner, c.Entry.Prefix.String(), now.String())
		case fresh[i]:
			u.step(LockAdd, "address", of, w.Owner, "", now.String())
		}
		u.Lock.Addresses = append(u.Lock.Addresses, lock.Address{Fabric: of, Owner: w.Owner, Prefix: now})
	}
	for _, m := range got.Moved {
		u.step(LockMove, "address", of, m.Entry.Owner, "", m.Owner)
	}
	for _, a := range got.Stale {
		u.stale(a, o)
	}
}

// stale keeps an address of something that is gone, unless it is to be pruned.
func (u *LockUpdate) stale(a lock.Address, o LockOptions) {
	if o.Prune {
		u.step(LockRemove, "address", a.Fabric, a.Owner, a.Prefix.String(), "")
		return
	}
	u.Lock.Addresses = append(u.Lock.Addresses, a)
}

func (u *LockUpdate) step(action LockAction, record, of, name, was, now string) {
	u.Steps = append(u.Steps, LockStep{action, record, of, name, was, now})
}

func (u *LockUpdate) note(format string, args ...any) {
	u.Notes = append(u.Notes, fmt.Sprintf(format, args...))
}

// relockImages takes over the digests of images.
func (a Artifacts) relockImages(u *LockUpdate, o LockOptions) error {
	for _, i := range a.inv.Images {
		if !locksImage(i) {
			continue
		}
		built, err := a.built(i)
		if err != nil {
			return err
		}
		r, err := a.recipe(i)
		if err != nil {
			return err
		}
		now := lock.Image{Name: i.Name, Inputs: r.Inputs(), Digest: built}
		switch was, locked := a.inv.Lock.Image(i.Name); {
		case locked:
			u.Lock.Images = append(u.Lock.Images, a.relockImage(u, o, was, now))
		case built == "":
			u.note("image %s is not built: nothing to lock yet; `ironrail image build %s`", i.Name, i.Name)
		default:
			u.step(LockAdd, "image", i.Name, "", "", built)
			u.Lock.Images = append(u.Lock.Images, now)
		}
	}
	for _, was := range a.inv.Lock.Images {
		switch {
		case !imageGone(a.inv, was):
		case o.Prune:
			u.step(LockRemove, "image", was.Name, "", was.Digest, "")
		default:
			u.Lock.Images = append(u.Lock.Images, was)
		}
	}
	return nil
}

// relockImage chooses between the locked image and the one that is built now, of which
// the digest is empty where none is.
func (a Artifacts) relockImage(u *LockUpdate, o LockOptions, was, now lock.Image) lock.Image {
	same, name := was.Inputs == now.Inputs, now.Name
	switch {
	case same && now.Digest == was.Digest:
	case now.Digest == "" && !same:
		u.note("image %s declares other things than the locked one, and is not built yet; `ironrail image build %s`", name, name)
	case now.Digest == "":
		if o.Upgrade && slices.Contains(o.Names, name) {
			u.note("image %s: nothing newer is built; `ironrail image build %s` first", name, name)
		}
	case same && !o.upgrades(name):
		if a.Images == nil || !a.Images.Has(was.Digest) {
			u.note("image %s: the locked %s is not in the store, and %s is used; `ironrail lock --upgrade %s` records it", name, store.Short(was.Digest), store.Short(now.Digest), name)
		}
	default:
		u.step(LockChange, "image", name, "", was.Digest, now.Digest)
		return now
	}
	return was
}

// locksImage reports whether the digest of an image is locked: it is built here,
// and not pinned.
func locksImage(i *inventory.Image) bool { return kinds.Supported(i) && i.Digest == "" }

// imageGone reports whether the lock has an image that no block locks.
func imageGone(inv *inventory.Inventory, was lock.Image) bool {
	return !slices.ContainsFunc(inv.Images, func(i *inventory.Image) bool { return i.Name == was.Name && locksImage(i) })
}

// stack is a driver stack for the nodes of an image.
type driverStack struct {
	driver *inventory.Driver
	image  *inventory.Image
}

// driverStacks lists the stacks whose packages are resolved here, in the order of
// the nodes that have them.
func driverStacks(inv *inventory.Inventory) (list []driverStack) {
	seen := map[driverStack]bool{}
	for _, n := range inv.Nodes {
		for _, d := range n.Drivers {
			st := driverStack{d, n.Image}
			if n.Image == nil || !served(d, n.Image) || seen[st] {
				continue
			}
			seen[st] = true
			list = append(list, st)
		}
	}
	return list
}

// closureInputs is the digest of what decides the packages of a stack, besides
// what the distribution offers on the day.
func closureInputs(o repo.Options) string {
	wanted := slices.Clone(o.Packages)
	slices.Sort(wanted)
	text := strings.Join(slices.Compact(wanted), " ") + "\n" + o.Image.Digest + "\n"
	if len(o.Pins)+len(o.Sources) > 0 {
		text += fmt.Sprintf("%q\n%q\n", o.Pins, o.Sources)
	}
	if len(o.Added) > 0 {
		text += fmt.Sprintf("added %q\n", repo.AddedSums(o.Added))
	}
	if len(o.Made.Packages) > 0 {
		text += fmt.Sprintf("%q\n", o.Made.Inputs)
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// relockPackages takes over the packages of driver stacks, from repositories that
// are built.
func (a Artifacts) relockPackages(u *LockUpdate, o LockOptions) error {
	stacks := driverStacks(a.inv)
	for _, st := range stacks {
		was, locked := a.inv.Lock.Closure(st.driver.Name, st.image.Name)
		now, found, err := a.closure(st)
		if err != nil {
			return err
		}
		same := locked && was.Inputs == now.Inputs
		switch moved := lock.Moved(was.Packages, now.Packages); {
		case !found:
			if now = was; !locked {
				continue // nothing is built
			}
		case !locked:
			u.step(LockAdd, "closure", st.driver.Name, st.image.Name, "", diag.Count(len(now.Packages), "package", "packages"))
		case same && moved == "":
			now = was
		case same && !o.upgrades(st.driver.Name):
			now = was
			u.note("driver %s for image %s: the repository is not what is locked: %s; `ironrail lock --upgrade %s` takes it", st.driver.Name, st.image.Name, moved, st.driver.Name)
		default:
			u.step(LockChange, "closure", st.driver.Name, st.image.Name, diag.Count(len(was.Packages), "package", "packages"), diag.Count(len(now.Packages), "package", "packages"))
		}
		u.Lock.Closures = append(u.Lock.Closures, now)
	}
	for _, was := range a.inv.Lock.Closures {
		if closureGone(stacks, was) {
			if o.Prune {
				u.step(LockRemove, "closure", was.Driver, was.Image, diag.Count(len(was.Packages), "package", "packages"), "")
				continue
			}
			u.Lock.Closures = append(u.Lock.Closures, was)
		}
	}
	return nil
}

// closureGone reports whether the lock has packages of a stack that no node has.
func closureGone(stacks []driverStack, was lock.Closure) bool {
	return !slices.ContainsFunc(stacks, func(st driverStack) bool { return st.driver.Name == was.Driver && st.image.Name == was.Image })
}

// closure reads the packages of the repository that is built for a stack; false
// when there is none for the stack as it stands.
func (a Artifacts) closure(st driverStack) (lock.Closure, bool, error) {
	if a.Images == nil {
		return lock.Closure{}, false, nil
	}
	digest, err := a.Digest(st.image)
	if err != nil || digest == "" {
		return lock.Closure{}, false, err
	}
	o, err := a.RepositoryOptions(st.driver, st.image.Name)
	if err != nil {
		return lock.Closure{}, false, err
	}
	got, found, err := repo.Find(o)
	if err != nil || !found {
		return lock.Closure{}, false, err
	}
	packages, err := contentOf(got)
	if err != nil {
		return lock.Closure{}, false, err
	}
	return lock.Closure{Driver: st.driver.Name, Image: st.image.Name, Inputs: closureInputs(o), Packages: packages}, true, nil
}

// contentOf is the content of a repository as the lock file has it.
func contentOf(r repo.Repo) (list []lock.Package, err error) {
	content, err := r.Content()
	for _, c := range content {
		list = append(list, lock.Package{Name: c.Name, Version: c.Version, Arch: c.Arch, Digest: c.Digest})
	}
	return list, err
}

// refuseUnlocked refuses a repository that has other packages than the lock file has for
// the same stack on the same image.
func (a Artifacts) refuseUnlocked(d *inventory.Driver, image string, o repo.Options, got repo.Repo) error {
	was, locked := a.inv.Lock.Closure(d.Name, image)
	if !locked || was.Inputs != closureInputs(o) {
		return nil
	}
	have, err := contentOf(got)
	if err != nil {
		return err
	}
	if moved := lock.Moved(was.Packages, have); moved != "" {
		return errkind.New(errkind.Mismatch, "the repository of driver %s for image %s is not what %s has: %s", d.Name, image, lock.File, moved).
			Do(fmt.Sprintf("`ironrail lock --upgrade %s` takes the new packages; the nodes that have the old ones then get them.", d.Name))
	}
	return nil
}
