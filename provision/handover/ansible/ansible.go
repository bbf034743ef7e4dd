// SPDX-License-Identifier: Apache-2.0

// Package ansible is the handover kind "ansible": the nodes in service as inventories of
// Ansible, one as its plugin "yaml" reads a file and one as its plugin "script" reads the
// output of a program. Source: Ansible documentation, "How to build your inventory" and
// "Developing dynamic inventory".
package ansible

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/export"
	"github.com/ironrail/ironrail/provision/handover/nodelist"
)

const (
	// Name is the kind's name in the language.
	Name = "ansible"
	// FileName is the inventory that `ansible -i` reads as a file.
	FileName = "inventory.json"
	// ScriptName is the file with what a dynamic inventory prints for --list.
	ScriptName = "list.json"
)

// Hosts are hosts of a group with their variables.
type hosts map[string]hostVariables

// hostVariables are the variables of a host.
type hostVariables struct {
	Host string  `json:"ansible_host"`
	Node literal `json:"ironrail"`
}

// literal is a node whose texts Ansible takes as they stand. It evaluates expressions in all
// variables of an inventory, and a serial number may come from a list of the maker's.
type literal nodelist.Node

// braces writes what begins an expression of Jinja2 as an expression that gives it.
var braces = strings.NewReplacer("{{", "{{ '{{' }}", "{%", "{{ '{%' }}", "{#", "{{ '{#' }}")

// MarshalJSON implements json.Marshaler. Outside of texts JSON has no brace before one of these.
func (l literal) MarshalJSON() ([]byte, error) {
	b, err := nodelist.Encode(nodelist.Node(l))
	return []byte(braces.Replace(string(b))), err
}

// fileGroup is a group as the plugin "yaml" reads it; JSON is YAML.
type fileGroup struct {
	Hosts     map[string]*hostVariables `json:"hosts,omitempty"`
	Variables map[string]string         `json:"vars,omitempty"`
	Children  map[string]fileGroup      `json:"children,omitempty"`
}

// scriptGroup is a group as a program prints it.
type scriptGroup struct {
	Hosts     []string          `json:"hosts,omitempty"`
	Variables map[string]string `json:"vars,omitempty"`
	Children  []string          `json:"children,omitempty"`
}

// New returns the kind. links are the addresses that were allocated to links.
func New(dir string, links []*roce.Links) *export.Kind {
	return export.New(dir, func(t handover.Target) ([]handover.File, error) {
		list := nodelist.Of(t, links)
		file, err := nodelist.Encode(fileOf(t.Handover, list))
		if err != nil {
			return nil, err
		}
		script, err := nodelist.Encode(scriptOf(t.Handover, list))
		return []handover.File{{Name: FileName, Content: file}, {Name: ScriptName, Content: script}}, err
	}, nodelist.Describe(links), "groups", "variables")
}

// variablesOf are the variables of all hosts.
func variablesOf(h *inventory.Handover) map[string]string {
	return maps.Collect(h.Entries("variables"))
}

// fileOf is the inventory as a file.
func fileOf(h *inventory.Handover, list nodelist.List) map[string]fileGroup {
	all := fileGroup{Hosts: map[string]*hostVariables{}, Variables: variablesOf(h), Children: map[string]fileGroup{}}
	for _, n := range list.Nodes {
		all.Hosts[n.Name] = &hostVariables{n.Address, literal(n)}
	}
	for name, members := range groupsOf(h, list.Nodes) {
		g := fileGroup{Hosts: map[string]*hostVariables{}}
		for _, m := range members {
			g.Hosts[m] = nil
		}
		all.Children[name] = g
	}
	return map[string]fileGroup{"all": all}
}

// scriptOf is what a dynamic inventory prints for --list. With _meta Ansible does not
// ask for each host.
func scriptOf(h *inventory.Handover, list nodelist.List) map[string]any {
	groups := groupsOf(h, list.Nodes)
	out := map[string]any{"all": scriptGroup{Variables: variablesOf(h), Children: append([]string{"ungrouped"}, slices.Sorted(maps.Keys(groups))...)}}
	meta := hosts{}
	for _, n := range list.Nodes {
		meta[n.Name] = hostVariables{n.Address, literal(n)}
	}
	for name, members := range groups {
		out[name] = scriptGroup{Hosts: members}
	}
	out["_meta"] = map[string]hosts{"hostvars": meta}
	return out
}

// groupsOf are the groups by name, with their hosts in order: those of the block, of
// which each node is one, and those by role, rack, leaf, pod and NVLink domain.
func groupsOf(h *inventory.Handover, nodes []nodelist.Node) map[string][]string {
	groups := map[string][]string{}
	names := groupNames{of: map[[2]string]string{}, taken: map[string]bool{}}
	for _, g := range h.Texts("groups") {
		names.taken[g] = true
		groups[g] = nil
	}
	for _, n := range nodes {
		in := h.Texts("groups")
		for _, by := range [][2]string{{"role", n.Role}, {"rack", n.Rack}, {"leaf", n.Leaf}, {"pod", n.Pod}, {"nvlink", n.Domain}} {
			if by[1] != "" {
				in = append(in, names.find(by))
			}
		}
		for _, g := range in {
			groups[g] = append(groups[g], n.Name)
		}
	}
	return groups
}

// groupNames gives groups names that Ansible takes, one to each thing.
type groupNames struct {
	of    map[[2]string]string // by what it is, and its name in the site
	taken map[string]bool
}

// find returns the group of a thing, such as rack_r01; of a second thing with the same
// letters it ends with a number.
func (g groupNames) find(thing [2]string) string {
	if name := g.of[thing]; name != "" {
		return name
	}
	plain := thing[0] + "_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, thing[1])
	name := plain
	for i := 2; g.taken[name]; i++ {
		name = plain + "_" + strconv.Itoa(i)
	}
	g.of[thing], g.taken[name] = name, true
	return name
}

// HostVariables takes the variables of one host out of what was written for --list, as a
// dynamic inventory prints them for --host. A host that is not in service has none.
func HostVariables(list []byte, host string) ([]byte, error) {
	var read struct {
		Meta struct {
			Variables map[string]json.RawMessage `json:"hostvars"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(list, &read); err != nil {
		return nil, errkind.New(errkind.Invalid, "%s: %w", ScriptName, err)
	}
	if v, ok := read.Meta.Variables[host]; ok {
		return nodelist.Encode(v)
	}
	return []byte("{}\n"), nil
}
