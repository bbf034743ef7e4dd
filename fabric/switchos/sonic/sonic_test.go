// SPDX-License-Identifier: Apache-2.0

package sonic_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/mlnxqos"
)

var update = flag.Bool("update", false, "write testdata again")

// site is a small room: two nodes with two rails, a leaf for each rail, and two
// spines; a /31 on every cable.
const site = `
site "t" {}
network "boot" { cidr = "10.20.0.0/16" }
network "oob" { cidr = "10.10.0.0/16" }
controller "head" { address = "10.20.0.2" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = secret("env:BMC_PASSWORD")
}
hardware "gpu" {
  rack_units = 8
  power { max = "8kW" }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  nic "rail" {
    fabric = fabric.compute
    speed  = "400Gbps"
    ports  = [for i in range(2) : { rail = i, pci = "0000:1${i}:00.0" }]
  }
}
image "debian" "os" { release = "bookworm" }
disk_layout "os" {
  on = "os"
  root {}
}
role "worker" {
  hardware = hardware.gpu
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
fabric "roce" "compute" {
  rails      = 2
  link       = "400Gbps"
  topology   = "rail-optimized"
  unit_size  = 4
  addressing = "point-to-point"
  cidr       = "10.200.0.0/20"
  mtu        = 9000
  switch {
    model = "SN5400"
    ports = 64
    speed = "400Gbps"
    os    = "sonic"
  }
  lossless {
    priority = 3
    dscp     = 26
    cnp_dscp = 48
    pfc      = true
    ecn      = true
  }
}
rack "r" {
  name   = "r01"
  number = 1
  units  = 42
  node "gpu" {
    count    = 2
    name     = "gpu-${count.index + 1}"
    role     = role.worker
    unit     = 1 + 8 * count.index
    serial   = "S${count.index}"
    boot_mac = "02:00:00:00:00:0${count.index}"
  }
}
`

// room loads a site, with the words of pairs exchanged.
func room(t *testing.T, pairs ...string) (*inventory.Inventory, []*sonic.Switch) {
	t.Helper()
	kinds := inventory.DefaultKinds()
	kinds.Fabric["roce"] = inventory.KindSpec{Spec: kinds.Fabric["roce"].Spec, Design: roce.Design}
	inv, diags, _ := inventory.LoadFS(fstest.MapFS{"site.hcl": {Data: []byte(strings.NewReplacer(pairs...).Replace(site))}}, inventory.Options{Kinds: &kinds})
	for _, d := range diags {
		if d.Check != "fabric.unplaced" {
			t.Errorf("%v %s: %s", d.Severity, d.Check, d.Detail)
		}
	}
	var links *roce.Links
	if all := roce.Addresses(inv); len(all) > 0 {
		links = all[0]
	}
	return inv, sonic.Switches(inv, inv.Fabrics[0], links)
}

func leaf(t *testing.T, list []*sonic.Switch) *sonic.Switch {
	t.Helper()
	i := slices.IndexFunc(list, func(s *sonic.Switch) bool { return s.Switch.Tier == inventory.Leaf })
	if i < 0 {
		t.Fatal("no leaf")
	}
	return list[i]
}

// TestRender holds all that is written for a leaf and a spine against files.
func TestRender(t *testing.T) {
	t.Parallel()
	_, list := room(t)
	tiers := map[inventory.Tier]bool{}
	for _, s := range list {
		if tiers[s.Switch.Tier] {
			continue
		}
		tiers[s.Switch.Tier] = true
		name := filepath.Join("testdata", string(s.Switch.Tier)+".json")
		got := s.Render().JSON()
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is not as in %s; look at the difference of `go test ./fabric/switchos/sonic -update`", s.Switch.Name, name)
		}
	}
	if len(tiers) != 2 {
		t.Fatalf("tiers %v", tiers)
	}
}

// TestReadBack: a switch that has what was rendered differs in nothing, in every
// form that a dump has.
func TestReadBack(t *testing.T) {
	t.Parallel()
	for _, pairs := range [][]string{nil, {`ecn      = true`, `ecn = false`}, {`pfc      = true`, `pfc = false`}, {`"10.200.0.0/20"`, `"fd00:77::/56"`}, {`SN5400`, `AS9736-64D`}, {`"point-to-point"`, `"subnet"`}} {
		_, list := room(t, pairs...)
		for _, s := range list {
			c := s.Render()
			for form, text := range map[string][]byte{"nested": c.JSON(), "flat": flat(t, c), "dump": dump(t, c)} {
				have, err := sonic.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				if diff := s.Compare(have); len(diff) > 0 {
					t.Errorf("%v, %s, %s: %v", pairs, s.Switch.Name, form, diff)
				}
				if patch := s.Patch(have); patch != nil {
					t.Errorf("patch %s", patch)
				}
			}
		}
	}
}

func flat(t *testing.T, c sonic.Config) []byte { return written(t, c, func(e any) any { return e }) }

func dump(t *testing.T, c sonic.Config) []byte {
	return written(t, c, func(e any) any { return map[string]any{"type": "hash", "ttl": -1, "value": e} })
}

func written(t *testing.T, c sonic.Config, wrap func(any) any) []byte {
	t.Helper()
	out := map[string]any{}
	for table, keys := range c {
		for key, e := range keys {
			fields := map[string]string{"NULL": "NULL"}
			for name, v := range e {
				if strings.HasPrefix(name, "route_map_") {
					name += "@"
				}
				fields[name] = v
			}
			out[table+"|"+key] = wrap(fields)
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDifferences: one change each is found, named by switch, port and field, and
// the patch undoes it.
func TestDifferences(t *testing.T) {
	t.Parallel()
	_, list := room(t)
	s := leaf(t, list)
	for _, c := range []struct {
		name   string
		change func(sonic.Config)
		want   string
	}{
		{"another priority is paused", func(c sonic.Config) { c.Set("PORT_QOS_MAP", "Ethernet8", sonic.Entry{"pfc_enable": "3,4"}) }, "PORT_QOS_MAP|Ethernet8: pfc_enable is 3,4, and should be 3"},
		{"not paused", func(c sonic.Config) { delete(c["PORT_QOS_MAP"]["Ethernet8"], "pfc_enable") }, "PORT_QOS_MAP|Ethernet8: pfc_enable is not there, and should be 3"},
		{"DSCP", func(c sonic.Config) { c["DSCP_TO_TC_MAP"]["ROCE"]["26"] = "1" }, "DSCP_TO_TC_MAP|ROCE: 26 is 1, and should be 3"},
		{"MTU", func(c sonic.Config) { c["PORT"]["Ethernet0"]["mtu"] = "1500" }, "PORT|Ethernet0: mtu is 1500, and should be 9100"},
		{"no watchdog", func(c sonic.Config) { delete(c["PFC_WD"], "Ethernet0") }, "PFC_WD|Ethernet0 is not there"},
		{"no ECN", func(c sonic.Config) { c["WRED_PROFILE"]["ROCE"]["ecn"] = "ecn_none" }, "WRED_PROFILE|ROCE: ecn is ecn_none, and should be ecn_all"},
		{"no table", func(c sonic.Config) { delete(c, "QUEUE") }, "QUEUE|Ethernet0|0 is not there"},
		{"neighbour", func(c sonic.Config) {
			for k := range c["BGP_NEIGHBOR"] {
				c["BGP_NEIGHBOR"][k]["asn"] = "65000"
				break
			}
		}, "asn is 65000, and should be 4200000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			have := s.Render()
			c.change(have)
			diff := s.Compare(have)
			if len(diff) == 0 || !strings.Contains(diff[0].String(), c.want) || !strings.HasPrefix(diff[0].String(), s.Switch.Name+" ") {
				t.Fatalf("got %v, want %s", diff, c.want)
			}
			if c.name != "no table" && len(diff) != 1 {
				t.Errorf("%d differences of one: %v", len(diff), diff)
			}
			apply(t, have, s.Patch(have))
			if left := s.Compare(have); len(left) > 0 {
				t.Errorf("after the patch: %v", left)
			}
		})
	}
}

// apply is what `config apply-patch` does with the patch, as far as these have it.
func apply(t *testing.T, have sonic.Config, patch []byte) {
	t.Helper()
	var ops []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(patch, &ops); err != nil {
		t.Fatalf("%v: %s", err, patch)
	}
	for _, op := range ops {
		parts := strings.Split(strings.TrimPrefix(op.Path, "/"), "/")
		for i := range parts {
			parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[i])
		}
		text := []byte("{}")
		switch {
		case op.Op == "remove" && len(parts) == 3:
			delete(have[parts[0]][parts[1]], parts[2])
		case len(parts) == 1:
			text = fmt.Appendf(nil, `{%q: %s}`, parts[0], op.Value)
		case len(parts) == 2:
			text = fmt.Appendf(nil, `{%q: {%q: %s}}`, parts[0], parts[1], op.Value)
		default:
			text = fmt.Appendf(nil, `{%q: {%q: {%q: %s}}}`, parts[0], parts[1], parts[2], op.Value)
		}
		if string(text) == "{}" {
			continue
		}
		part, err := sonic.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for table, keys := range part {
			for key, e := range keys {
				have.Set(table, key, e)
			}
		}
	}
}

// host is a node's port that is as the fabric says, with words exchanged.
func host(t *testing.T, name string, pairs ...string) sonic.HostPort {
	t.Helper()
	text, err := os.ReadFile("../../../tool/recognise/testdata/mlnx_qos.txt")
	if err != nil {
		t.Fatal(err)
	}
	q, _, err := mlnxqos.Parse([]byte(strings.NewReplacer(pairs...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	return sonic.HostPort{Name: name, QoS: q, MTU: 9000, TrafficClass: 106}
}

// TestEnds: what a node does and what its switch does must fit, and a mismatch
// names both.
func TestEnds(t *testing.T) {
	t.Parallel()
	_, list := room(t)
	s := leaf(t, list)
	p := s.Ports[0]
	name := p.Far.String()
	for _, c := range []struct {
		what   string
		host   func(*sonic.HostPort)
		swap   []string
		change func(sonic.Config)
		want   string
	}{
		{what: "as it should be"},
		{what: "the node pauses another", swap: []string{"0   0   0   1   0   0   0   0", "0   0   0   0   1   0   0   0"}, want: "the node pauses priorities [4], and the switch priorities [3]"},
		{what: "the switch pauses none", change: func(c sonic.Config) { delete(c["PORT_QOS_MAP"][p.Name], "pfc_enable") }, want: "the node pauses priorities [3], and the switch no priority"},
		{what: "DSCP on the switch", change: func(c sonic.Config) { c["DSCP_TO_TC_MAP"]["ROCE"]["26"] = "2" }, want: "DSCP 26 (RDMA) has priority 3 on the node and priority 2 on the switch"},
		{what: "CNP on the switch", change: func(c sonic.Config) { c["DSCP_TO_TC_MAP"]["ROCE"]["48"] = "0" }, want: "DSCP 48 (congestion notifications) has priority 6 on the node and priority 0"},
		{what: "trust", swap: []string{"trust state: dscp", "trust state: pcp"}, want: "the node trusts pcp"},
		{what: "MTU", change: func(c sonic.Config) { c["PORT"][p.Name]["mtu"] = "1500" }, want: "packets of 9000 bytes, and the switch takes 1500"},
		{what: "traffic class", host: func(h *sonic.HostPort) { h.TrafficClass = 0 }, want: "RDMA with DSCP 0, not 26"},
		{what: "ECN", change: func(c sonic.Config) { delete(c["QUEUE"][p.Name+"|3"], "wred_profile") }, want: "does not mark queue 3"},
		{what: "watchdog", change: func(c sonic.Config) { delete(c["PFC_WD"], p.Name) }, want: "without a watchdog"},
		{what: "both pause too much", swap: []string{"0   0   0   1   0   0   0   0", "0   0   0   1   1   0   0   0"},
			change: func(c sonic.Config) { c["PORT_QOS_MAP"][p.Name]["pfc_enable"] = "3,4" }, want: "both ends pause priorities [3 4]"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			have, h := s.Render(), host(t, name, c.swap...)
			if c.change != nil {
				c.change(have)
			}
			if c.host != nil {
				c.host(&h)
			}
			got := s.CompareEnds(have, []sonic.HostPort{h})
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("got %v", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0].String(), c.want) || !strings.HasPrefix(got[0].String(), name+" and "+s.Switch.Name+" "+p.Name+": ")):
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

func TestHeadroom(t *testing.T) {
	t.Parallel()
	// 400 Gb/s is 50 bytes a nanosecond: 10 ns a metre there and back, 1228.8 ns.
	if got, want := sonic.PauseHeadroom(400e9, 10, 9100), 5000+61440+2*9138+64; got != want {
		t.Errorf("got %d, want %d", got, want)
	}
	_, list := room(t, "SN5400", "AS9736-64D")
	s := leaf(t, list)
	s.Ports[0].Length = 30
	have := s.Render()
	have.Set("BUFFER_PG", s.Ports[0].Name+"|3", sonic.Entry{"profile": "p"})
	need := sonic.PauseHeadroom(400e9, 30, 9100)
	for xoff, found := range map[int]int{need - 1: 1, need: 0} {
		have.Set("BUFFER_PROFILE", "p", sonic.Entry{"xoff": fmt.Sprint(xoff)})
		if got := s.Headrooms(have); len(got) != found {
			t.Errorf("%d of %d: %v", xoff, need, got)
		}
	}
}

// TestWhich: a dump is of the switch whose host name it has.
func TestWhich(t *testing.T) {
	t.Parallel()
	_, list := room(t)
	for _, f := range sonic.Files(list) {
		have, err := sonic.Parse(f.Content)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sonic.Which(list, have)
		if err != nil || f.Name != strings.ReplaceAll(s.Switch.Name, "/", "-")+".json" {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	alike := []*sonic.Switch{{Switch: &inventory.Switch{Name: "a/b-c"}}, {Switch: &inventory.Switch{Name: "a-b/c"}}}
	if s, err := sonic.Which(alike, alike[0].Render()); err == nil || !strings.Contains(err.Error(), "a/b-c and a-b/c") {
		t.Errorf("of two switches of one host name: %v, %v", s, err)
	}
	have, err := sonic.Parse([]byte(`{"DEVICE_METADATA": {"localhost": {"hostname": "sonic"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sonic.Which(list, have); err == nil || !strings.Contains(err.Error(), `"sonic"`) {
		t.Errorf("got %v", err)
	}
}

func TestPublicDumps(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(sonic.Config) bool{
		"sonic-buildimage-centec-qos.json": func(c sonic.Config) bool {
			return c.QoSOf("Ethernet54").Priority[26] == 3 && slices.Equal(c.QoSOf("Ethernet1").Paused, []int{3, 4})
		},
		"sonic-utilities-buffers-double-pools.json": func(c sonic.Config) bool {
			return c["BUFFER_PG"]["Ethernet4|4"]["profile"] == "NULL" && c.QoSOf("Ethernet0").MTU == 9100
		},
		"sonic-utilities-config_qos.json": func(c sonic.Config) bool { return c["CABLE_LENGTH"]["AZURE"]["Ethernet0"] == "300m" },
		"sonic-utilities-qos-map.json": func(c sonic.Config) bool {
			return slices.Equal(c.QoSOf("Ethernet100").Paused, []int{3, 4}) && c.QoSOf("Ethernet92").Paused == nil
		},
		"sonic-utilities-update_qos.json": func(c sonic.Config) bool { return c["QUEUE"]["Ethernet0|4"]["wred_profile"] == "AZURE_LOSSLESS" },
	} {
		data, err := os.ReadFile(filepath.Join("../../../../shared/samples/sonic", name))
		if err != nil {
			t.Skip("the samples of other people are not here")
		}
		c, err := sonic.Parse(data)
		if err != nil || !check(c) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"PORT": {"Ethernet0,Ethernet8": {"mtu": "9100"}}, "QUEUE|Ethernet0|0-7": {"scheduler": "[SCHEDULER|a]"}}`))
	f.Add([]byte(`{"BGP_NEIGHBOR|default|10.0.0.1": {"value": {"asn": "1", "x@": "a,b"}}, "PORT": {"Ethernet0": {"lanes": [0, 1]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := sonic.Parse(data)
		if err != nil {
			return
		}
		again, err := sonic.Parse(c.JSON())
		if err == nil && len(again) > len(c) {
			t.Errorf("%d tables became %d", len(c), len(again))
		}
		for port := range c["PORT_QOS_MAP"] {
			c.QoSOf(port)
		}
	})
}
