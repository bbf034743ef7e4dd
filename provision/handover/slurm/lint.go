// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/handover"
)

// maxLine is how long a line may be, in bytes: what slurmctld reads of one
// (src/common/parse_config.c, 64 KiB), with room for what it expands.
const maxLine = 60 << 10

// lintFiles reads the files as slurmctld does and refuses what it would refuse, or drop
// in silence: a node twice, a node of the topology that has no line, one that is
// under no switch or in no block, blocks that are too small, lines too long. A file
// that fails never replaces the one that is there.
func lintFiles(files []handover.File, d daemon) error {
	nodes := map[string]bool{}
	for _, f := range files {
		var err error
		switch f.Name {
		case "nodes.conf":
			err = lintNodes(f, nodes)
		case "gres.conf":
			err = lintGres(f, nodes)
		case "topology.conf":
			err = lintTopology(f.Name, topologyLines(f.Content), nodes)
		case "topology.yaml":
			var list []topologyLine
			if list, err = topologyYAML(f.Content); err == nil {
				err = lintTopology(f.Name, list, nodes)
			}
			if err == nil && d.release.known() && d.release.before(yamlSince) {
				err = badFile(f.Name, "is read since %s, and slurmctld is %s", yamlSince, d.release)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func badFile(name, format string, args ...any) error {
	return errkind.New(errkind.Internal, name+": "+format, args...).Do("Slurm's files stay as they are. This is a mistake of ironrail's: report it with the site's files.")
}

// splitKeys takes a line of KEY=VALUE apart; a value in quotes may hold blanks.
func splitKeys(line string) map[string]string {
	out := map[string]string{}
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		key, rest, found := strings.Cut(line, "=")
		if !found {
			out[line] = ""
			break
		}
		end := strings.IndexByte(rest, ' ')
		if strings.HasPrefix(rest, `"`) {
			if end = strings.IndexByte(rest[1:], '"') + 2; end == 1 {
				end = len(rest)
			}
		}
		if end < 0 || end > len(rest) {
			end = len(rest)
		}
		out[key], line = strings.Trim(rest[:end], `"`), rest[end:]
	}
	return out
}

// eachLine gives do the lines that are no comments.
func eachLine(f handover.File, do func(line string, w map[string]string) error) error {
	for line := range strings.Lines(string(f.Content)) {
		if len(line) > maxLine {
			return badFile(f.Name, "a line has %d bytes", len(line))
		}
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		if err := do(line, splitKeys(line)); err != nil {
			return err
		}
	}
	return nil
}

func lintNodes(f handover.File, nodes map[string]bool) error {
	return eachLine(f, func(line string, w map[string]string) error {
		if list, ok := w["PartitionName"]; ok {
			if list == "" {
				return badFile(f.Name, "a partition has no name")
			}
			return eachName(w["Nodes"], func(name string) error {
				if !nodes[name] {
					return badFile(f.Name, "node %q of the partition has no line", name)
				}
				return nil
			})
		}
		name := w["NodeName"]
		if !plainName(name) || nodes[name] {
			return badFile(f.Name, "%q is not the line of one more node", line)
		}
		for _, key := range []string{"CPUs", "RealMemory"} {
			if n, err := strconv.ParseInt(w[key], 10, 64); err != nil || n < 1 {
				return badFile(f.Name, "node %s has %s=%s", name, key, w[key])
			}
		}
		if state := w["State"]; state != "UNKNOWN" && (state != "DRAIN" || !strings.HasPrefix(w["Reason"], ours)) {
			return badFile(f.Name, "node %s has State=%s", name, state)
		}
		nodes[name] = true
		return nil
	})
}

func lintGres(f handover.File, nodes map[string]bool) error {
	return eachLine(f, func(line string, w map[string]string) error {
		if w["Name"] != "gpu" || !plainName(w["Type"]) {
			return badFile(f.Name, "%q is no line of GPUs", line)
		}
		return eachName(w["NodeName"], func(name string) error {
			if !nodes[name] {
				return badFile(f.Name, "node %q is not in nodes.conf", name)
			}
			return nil
		})
	})
}

// topologyLine is a switch, a block, or the sizes of blocks.
type topologyLine struct {
	name, nodes, children string
	block                 bool
	sizes                 []int
}

func topologyLines(content []byte) []topologyLine {
	var list []topologyLine
	_ = eachLine(handover.File{Name: "topology.conf", Content: content}, func(_ string, w map[string]string) error {
		l := topologyLine{name: w["SwitchName"], nodes: w["Nodes"], children: w["Switches"]}
		if name, ok := w["BlockName"]; ok {
			l.name, l.block = name, true
		}
		for _, text := range strings.FieldsFunc(w["BlockSizes"], func(r rune) bool { return r == ',' }) {
			n, _ := strconv.Atoi(text)
			l.sizes = append(l.sizes, n)
		}
		list = append(list, l)
		return nil
	})
	return list
}

func topologyYAML(content []byte) (list []topologyLine, err error) {
	var doc []struct {
		Topology string `yaml:"topology"`
		Default  bool   `yaml:"cluster_default"`
		Tree     struct {
			Switches []struct{ Switch, Nodes, Children string } `yaml:"switches"`
		} `yaml:"tree"`
		Block struct {
			Sizes  []int                           `yaml:"block_sizes"`
			Blocks []struct{ Block, Nodes string } `yaml:"blocks"`
		} `yaml:"block"`
	}
	d := yaml.NewDecoder(strings.NewReader(string(content)))
	d.KnownFields(true)
	if err := d.Decode(&doc); err != nil || len(doc) != 1 || doc[0].Topology == "" || !doc[0].Default {
		return nil, badFile("topology.yaml", "is not one topology that is the default: %v", err)
	}
	for _, s := range doc[0].Tree.Switches {
		list = append(list, topologyLine{name: s.Switch, nodes: s.Nodes, children: s.Children})
	}
	for _, b := range doc[0].Block.Blocks {
		list = append(list, topologyLine{name: b.Block, nodes: b.Nodes, block: true})
	}
	if len(doc[0].Block.Sizes) > 0 {
		list = append(list, topologyLine{sizes: doc[0].Block.Sizes})
	}
	return list, nil
}

// lintTopology wants every node at exactly one place, every switch but one below
// another, and blocks that go with their sizes.
func lintTopology(name string, list []topologyLine, nodes map[string]bool) error {
	placed, switches, below, sizes := map[string]int{}, map[string]bool{}, map[string]bool{}, []int(nil)
	least := len(nodes)
	for _, l := range list {
		if l.sizes != nil {
			sizes = l.sizes
			continue
		}
		if !plainName(l.name) || switches[l.name] {
			return badFile(name, "%q is not the name of one more switch or block", l.name)
		}
		switches[l.name] = true
		count := 0
		if err := eachName(l.nodes, func(node string) error {
			count, placed[node] = count+1, placed[node]+1
			if !nodes[node] || placed[node] > 1 {
				return badFile(name, "node %q is at %d places, or has no line", node, placed[node])
			}
			return nil
		}); err != nil {
			return err
		}
		if l.block {
			least = min(least, count)
		}
		_ = eachName(l.children, func(s string) error { below[s] = true; return nil })
	}
	if len(placed) != len(nodes) {
		return badFile(name, "%d of %d nodes have a place", len(placed), len(nodes))
	}
	return lintShape(name, switches, below, sizes, least)
}

func lintShape(name string, switches, below map[string]bool, sizes []int, least int) error {
	for s := range below {
		if !switches[s] {
			return badFile(name, "switch %q has no line", s)
		}
	}
	if sizes == nil {
		if len(switches)-len(below) != 1 {
			return badFile(name, "%d switches are below no other, and one is the root", len(switches)-len(below))
		}
		return nil
	}
	for i, n := range sizes {
		times := n / max(sizes[0], 1)
		if n < 1 || times*sizes[0] != n || times&(times-1) != 0 || i > 0 && n <= sizes[i-1] {
			return badFile(name, "block size %d is no power of two times %d", n, sizes[0])
		}
	}
	if least < sizes[0] {
		return badFile(name, "a block has %d nodes, and the base size is %d", least, sizes[0])
	}
	return nil
}

// eachName gives do the names of a host list expression.
func eachName(expression string, do func(string) error) error {
	for _, name := range expandHostlist(expression) {
		if err := do(name); err != nil {
			return err
		}
	}
	return nil
}
