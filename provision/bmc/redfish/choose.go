// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// several says that a service shows more than one resource that may be meant. Which of
// them it is matters, so that none is chosen for standing first.
func several(what string, all []string, do string) error {
	return errkind.New(errkind.Conflict, "the bmc shows %d %s, and nothing tells which is the node's: %s", len(all), what, OneLine(strings.Join(all, ", "))).Do(do)
}

// doCompareSystems is what to do about managers and chassis that look alike.
const doCompareSystems = "Compare them in the BMC's own pages; newer firmware of the BMC may say more of each."

// pickSystem chooses the node among the systems of the service. Baseboards of
// GPUs are systems of their own on HGX and DGX nodes, without a boot device.
func (c *Client) pickSystem(ctx context.Context) (string, system, error) {
	all, err := c.members(ctx, c.root.Systems.or(rootPath+"Systems"), maxSystems)
	if err != nil {
		return "", system{}, err
	}
	var best []system
	most := 0
	for _, l := range all {
		var s system
		if _, err := c.get(ctx, string(l), &s); err != nil {
			if len(all) > 1 && isStatus(err, http.StatusNotFound, http.StatusForbidden, http.StatusInternalServerError) {
				continue // bogus members of some services
			}
			return "", system{}, err
		}
		s.path = string(l)
		score := c.score(l, s)
		if len(best) == 0 || score > most {
			best, most = nil, score
		}
		if score == most && !slices.ContainsFunc(best, s.same) {
			best = append(best, s)
		}
	}
	switch len(best) {
	case 0:
		return "", system{}, errkind.New(errkind.Unsupported, "the bmc shows no system").
			Do("Reset the BMC; some lose their node until then. If it stays so, update its firmware.")
	case 1:
		return best[0].path, best[0], nil
	}
	var words []string
	for _, s := range best {
		words = append(words, s.path+" (serial "+cmp.Or(string(s.SerialNumber), "not told")+")")
	}
	return "", system{}, several("systems", words, "Give the node, as its serial, the serial number or SKU that its own system shows. Nothing was sent to any of them.")
}

// same reports whether two resources show one node: some services list it twice.
func (s system) same(t system) bool { return s.UUID != "" && s.UUID == t.UUID || s.path == t.path }

// candidate is what managers and chassis say of whose they are.
type candidate struct {
	path        string
	ManagerType text
	ChassisType text
	Links       struct {
		ManagerForServers, ComputerSystems links
		ContainedBy                        link
	}
}

// managerFor are the kinds of manager that may be a node's own BMC, the likelier first
// (schema Manager, ManagerType).
var managerFor = []text{"BMC", "ManagementController"}

// chassisOf are the kinds of chassis that a node is, and not a part of one or what holds
// many (schema Chassis, ChassisType).
var chassisOf = []text{"RackMount", "StandAlone", "Blade", "Sled"}

// pickManager chooses the node's BMC: of several the one that says that it serves the
// system, and of those the one that is a BMC. "" with an error that says which there
// are: nothing tells them apart.
func (c *Client) pickManager(ctx context.Context, system string, linked links) (path string, unclear, err error) {
	all, err := c.candidates(ctx, linked, c.root.Managers.or(rootPath+"Managers"))
	if err != nil || len(all) < 2 {
		return only(all), nil, err
	}
	all = narrowed(all, func(k candidate) bool { return k.Links.ManagerForServers.has(system) })
	for _, kind := range managerFor {
		all = narrowed(all, func(k candidate) bool { return k.ManagerType == kind })
	}
	return only(all), unless(all, "managers"), nil
}

// pickChassis chooses the node's chassis: of several one that is of the kind that nodes
// are, and of those the one that contains the others. "" with an error that says which
// there are: nothing tells them apart.
func (c *Client) pickChassis(ctx context.Context, system string, linked links) (path string, unclear, err error) {
	all, err := c.candidates(ctx, linked, c.root.Chassis.or(rootPath+"Chassis"))
	if err != nil || len(all) < 2 {
		return only(all), nil, err
	}
	all = narrowed(all, func(k candidate) bool { return k.Links.ComputerSystems.has(system) })
	all = narrowed(all, func(k candidate) bool { return slices.Contains(chassisOf, k.ChassisType) })
	among := all
	all = narrowed(all, func(k candidate) bool {
		return !slices.ContainsFunc(among, func(o candidate) bool { return o.path != k.path && links{k.Links.ContainedBy}.has(o.path) })
	})
	return only(all), unless(all, "chassis"), nil
}

// candidates reads linked resources, else those of a collection, without those of the
// GPU baseboard. One alone is not read: there is nothing to choose.
func (c *Client) candidates(ctx context.Context, linked links, collection string) (out []candidate, err error) {
	if len(linked) == 0 {
		linked, err = c.members(ctx, collection, maxSystems)
		if err != nil && !isStatus(err, http.StatusNotFound, http.StatusForbidden, http.StatusMethodNotAllowed) {
			return nil, err
		}
	}
	var own links
	for _, l := range linked {
		if !isBoard(l) && !slices.Contains(own, l) {
			own = append(own, l)
		}
	}
	if len(own) == 1 {
		return []candidate{{path: string(own[0])}}, nil
	}
	for _, l := range own[:min(len(own), maxSystems)] {
		k := candidate{path: string(l)}
		if _, err := c.get(ctx, k.path, &k); err != nil {
			if ignoreUnsupported(err) == nil {
				continue // bogus members of some services
			}
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// narrowed keeps those of which something is so; all, when it is so of none.
func narrowed(all []candidate, is func(candidate) bool) []candidate {
	var out []candidate
	for _, k := range all {
		if is(k) {
			out = append(out, k)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// only is the path of the one that is left; "" of none and of several.
func only(all []candidate) string {
	if len(all) != 1 {
		return ""
	}
	return all[0].path
}

// unless is the error of several; nil of one or none.
func unless(all []candidate, what string) error {
	if len(all) < 2 {
		return nil
	}
	var paths []string
	for _, k := range all {
		paths = append(paths, k.path)
	}
	return several(what, paths, doCompareSystems)
}
