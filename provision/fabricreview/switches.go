// SPDX-License-Identifier: Apache-2.0

package fabricreview

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/fabric/switchos/sonic/yang"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/mlnxqos"
)

// Dump is what a switch or the NIC of a node printed, by the file that it is in.
type Dump struct {
	File    string
	Port    string // of a node, node/nic/port: Content is of mlnx_qos; empty: it is of a switch
	Content []byte
}

// SwitchReport is how one switch is against what the site says.
type SwitchReport struct {
	File        string          `json:"file"`
	Fabric      string          `json:"fabric"`
	Switch      string          `json:"switch"`
	Differences []string        `json:"differences"` // by table, key and field
	Mismatches  []string        `json:"mismatches"`  // with nodes, both ends named
	Headroom    []string        `json:"headroom"`    // ports with too little
	Patch       json.RawMessage `json:"patch,omitempty"`
}

// Findings is how many things are wrong.
func (r SwitchReport) Findings() int { return len(r.Differences) + len(r.Mismatches) + len(r.Headroom) }

// switchFiles are those of the SONiC switches of a RoCE fabric.
func (r Review) switchFiles(_ context.Context, _ state.Reader, f *inventory.Fabric) (files []File, err error) {
	list := r.listSwitches(f)
	for i, x := range sonic.Files(list) {
		if err := checkYANG(list[i].Switch.Name, x.Content); err != nil {
			return nil, err
		}
		files = append(files, File{Fabric: f.Name, Of: list[i].Switch.Name, Name: "config_db.json", Content: x.Content})
	}
	return files, nil
}

// checkYANG refuses a configuration that no switch would take: `config apply-patch`
// and `config load` validate against SONiC's YANG models.
func checkYANG(name string, content []byte) error {
	var db yang.DB
	if err := json.Unmarshal(content, &db); err != nil {
		return errkind.New(errkind.Internal, "switch %s: the configuration is no JSON: %w", name, err)
	}
	if problems := yang.Check(db, yang.Part); len(problems) > 0 {
		return errkind.New(errkind.Internal, "switch %s: SONiC's YANG models refuse %d values of the configuration, the first: %s", name, len(problems), problems[0]).
			Do("Report this as a defect of ironrail, with the site's fabric block; nothing was written.")
	}
	return nil
}

// listSwitches returns the SONiC switches of a RoCE fabric.
func (r Review) listSwitches(f *inventory.Fabric) []*sonic.Switch {
	links := roce.Addresses(r.Inv)
	i := slices.IndexFunc(links, func(l *roce.Links) bool { return l.Fabric == f })
	if i < 0 {
		return sonic.Switches(r.Inv, f, nil)
	}
	return sonic.Switches(r.Inv, f, links[i])
}

// VerifySwitches compares CONFIG_DBs of switches with what the site says, and with
// what nodes do whose NICs' output of mlnx_qos is among the dumps. It touches
// nothing.
func (r Review) VerifySwitches(dumps []Dump) ([]SwitchReport, error) {
	var all []*sonic.Switch
	for _, f := range r.Inv.Fabrics {
		if f.Kind == roce.Name {
			all = append(all, r.listSwitches(f)...)
		}
	}
	if len(all) == 0 {
		return nil, errkind.New(errkind.NotFound, "the site has no SONiC switch in a fabric of kind %q", roce.Name).Do(`Give the switches of the fabric os = "sonic".`)
	}
	hosts, err := r.readHosts(all, dumps)
	if err != nil {
		return nil, err
	}
	list := []SwitchReport{}
	for _, d := range dumps {
		if d.Port != "" {
			continue
		}
		have, err := sonic.Parse(d.Content)
		if err != nil {
			return nil, errkind.New(errkind.Invalid, "%s: %w", d.File, err).Do("Give what `sonic-cfggen -d --print-data` printed, or /etc/sonic/config_db.json.")
		}
		sw, err := sonic.Which(all, have)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.File, err)
		}
		list = append(list, SwitchReport{
			File: d.File, Fabric: sw.Fabric.Name, Switch: sw.Switch.Name, Patch: sw.Patch(have),
			Differences: formatAll(sw.Compare(have)), Mismatches: formatAll(sw.CompareEnds(have, hosts)), Headroom: formatAll(sw.Headrooms(have)),
		})
	}
	return list, nil
}

// formatAll writes each value.
func formatAll[T fmt.Stringer](list []T) []string {
	out := make([]string, 0, len(list))
	for _, x := range list {
		out = append(out, x.String())
	}
	return out
}

// readHosts reads what NICs of nodes printed; each must be of a port that a cable of
// these switches ends in.
func (r Review) readHosts(all []*sonic.Switch, dumps []Dump) (list []sonic.HostPort, err error) {
	known := map[string]*inventory.Fabric{}
	for _, sw := range all {
		for _, p := range sw.Ports {
			if p.Far.Node != nil {
				known[p.Far.String()] = sw.Fabric
			}
		}
	}
	for _, d := range dumps {
		if d.Port == "" {
			continue
		}
		f := known[d.Port]
		if f == nil {
			return nil, errkind.New(errkind.NotFound, "%s is no port of a node that a cable of a SONiC switch ends in", d.Port).Do("Write it as node/nic/port, such as gpu-1/rail/0.")
		}
		q, _, err := mlnxqos.Parse(d.Content)
		if err != nil {
			return nil, errkind.New(errkind.Invalid, "%s: %w", d.File, err).Do("Give what `mlnx_qos -i INTERFACE` printed.")
		}
		list = append(list, sonic.HostPort{Name: d.Port, QoS: q, MTU: f.MTU, TrafficClass: -1})
	}
	return list, nil
}
