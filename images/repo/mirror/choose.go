// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory/unit"
)

// offer is one package of a repository.
type offer struct {
	name, version   string // the version as pins are compared with it
	file, sum       string
	size            int64
	needs, provides []string // names; of alternatives, one after another with " | " between them
}

// offers are the packages of a repository.
type offers []offer

// chooser is the work on one list.
type chooser struct {
	named    map[string]offers // by name
	provided map[string]offers // by what they provide beside their name
	pins     []repo.Pin
	chosen   map[string]offer // by name
	have     map[string]bool  // what the chosen ones provide
	next     []string
}

// choose returns the packages that are wanted with all that they need of the list, sorted by
// name: of each the version that a pin takes, else the newest. What is not on the list is
// absent: others bring it.
func (all offers) choose(w Want) (list offers, absent []string, err error) {
	c := &chooser{named: map[string]offers{}, provided: map[string]offers{}, pins: w.Pins, chosen: map[string]offer{}, have: map[string]bool{}}
	for _, o := range all {
		c.named[o.name] = append(c.named[o.name], o)
		for _, p := range o.provides {
			c.provided[p] = append(c.provided[p], o)
		}
	}
	for _, name := range w.Packages {
		if len(c.named[name]) == 0 {
			absent = append(absent, name)
			continue
		}
		o, fits := c.pick(c.named[name])
		if !fits {
			return nil, nil, c.refuse(name)
		}
		c.take(o)
	}
	for len(c.next) > 0 {
		need := c.next[0]
		c.next = c.next[1:]
		c.satisfy(need)
	}
	for _, name := range slices.Sorted(maps.Keys(c.chosen)) {
		list = append(list, c.chosen[name])
	}
	if len(list) == 0 {
		err = errkind.New(errkind.NotFound, "it has none of the packages that the driver needs: %s", strings.Join(w.Packages, ", ")).
			Do("Correct the url of the repository: each release of a system has one of its own.")
	}
	return list, absent, err
}

// pinOf is the pin that names a package.
func (c *chooser) pinOf(name string) (repo.Pin, bool) {
	for _, p := range c.pins {
		for _, glob := range p.Packages {
			if ok, err := path.Match(glob, name); err == nil && ok {
				return p, true
			}
		}
	}
	return repo.Pin{}, false
}

// pick is the newest of the versions of one package that its pin takes, or of all where it
// takes none: fits is false then, if there is a pin.
func (c *chooser) pick(versions offers) (o offer, fits bool) {
	pin, pinned := c.pinOf(versions[0].name)
	newest := func(list offers) offer {
		return slices.MaxFunc(list, func(a, b offer) int { return unit.CompareVersions(a.version, b.version) })
	}
	taken := slices.DeleteFunc(slices.Clone(versions), func(o offer) bool {
		ok, err := path.Match(pin.Version, o.version)
		return !pinned || err != nil || !ok
	})
	if len(taken) == 0 {
		return newest(versions), !pinned
	}
	return newest(taken), true
}

// refuse says which versions there are.
func (c *chooser) refuse(name string) error {
	pin, _ := c.pinOf(name)
	var versions []string
	for _, o := range c.named[name] {
		versions = append(versions, o.version)
	}
	slices.SortFunc(versions, unit.CompareVersions)
	return errkind.New(errkind.NotFound, "it has no %s of version %s; it has %s", name, pin.Version, strings.Join(slices.Compact(versions), ", ")).Do("Correct the version of the driver, or name the repository that has it.")
}

// take chooses a package.
func (c *chooser) take(o offer) {
	if _, twice := c.chosen[o.name]; twice {
		return
	}
	c.chosen[o.name], c.have[o.name] = o, true
	for _, p := range o.provides {
		c.have[p] = true
	}
	c.next = append(c.next, o.needs...)
}

// satisfy chooses what a package needs, unless a chosen one has it: by its name, else by what
// is provided, where a package whose pin takes it comes first. What nobody has comes from
// elsewhere, such as the distribution.
func (c *chooser) satisfy(need string) {
	alternatives := strings.Split(need, " | ")
	if slices.ContainsFunc(alternatives, func(name string) bool { return c.have[name] }) {
		return
	}
	for _, name := range alternatives {
		if versions := c.named[name]; len(versions) > 0 {
			o, _ := c.pick(versions)
			c.take(o)
			return
		}
	}
	for _, name := range alternatives {
		best := offer{}
		for _, p := range c.provided[name] {
			o, fits := c.pick(c.named[p.name])
			_, pinned := c.pinOf(p.name)
			if best.name == "" || fits && pinned {
				best = o
			}
		}
		if best.name != "" {
			c.take(best)
			return
		}
	}
}
