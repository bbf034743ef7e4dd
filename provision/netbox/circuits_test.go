// SPDX-License-Identifier: Apache-2.0

package netbox

import (
	"encoding/json"
	"strings"
	"testing"
)

// joined are cables written as "PROFILE: END, END = END", and the ports of panels as the API
// answers with them.
func joined(t *testing.T, cables, fronts, rears []string) Export {
	t.Helper()
	e := saved(t)
	e.Cables, e.FrontPorts, e.RearPorts = nil, nil, nil
	for i, text := range cables {
		profile, ends, _ := strings.Cut(text, ":")
		x := Cable{ID: i + 1}
		if profile != "" {
			x.Profile = &Choice{profile}
		}
		a, b, _ := strings.Cut(ends, "=")
		x.A, x.B = terminations(t, a), terminations(t, b)
		e.Cables = append(e.Cables, x)
	}
	for _, text := range fronts {
		if err := appendTo(&e.FrontPorts)(json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range rears {
		if err := appendTo(&e.RearPorts)(json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// terminations reads "gpu01 ib1, front 11": an interface, or a port of a panel by its id.
func terminations(t *testing.T, text string) (list []Termination) {
	t.Helper()
	for w := range strings.SplitSeq(text, ",") {
		device, name, _ := strings.Cut(strings.TrimSpace(w), " ")
		var x Termination
		raw := `{"object_type": "dcim.interface", "object_id": ` + idOf(device+name) + `, "object": {"name": "` + name + `", "device": {"name": "` + device + `"}}}`
		if device == "front" || device == "rear" {
			raw = `{"object_type": "dcim.` + device + `port", "object_id": ` + name + `, "object": {"name": "` + device + name + `", "device": {"name": "pp"}}}`
		}
		if err := json.Unmarshal([]byte(raw), &x); err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

// idOf makes an id of a text.
func idOf(text string) string {
	id := 0
	for _, b := range []byte(text) {
		id = (id*31 + int(b)) % 1_000_003
	}
	b, _ := json.Marshal(id)
	return string(b)
}

const (
	old11  = `{"id": 11, "name": "front11", "device": {"name": "pp"}, "rear_port": {"id": 1, "name": "rear1"}, "rear_port_position": 1}`
	old12  = `{"id": 12, "name": "front12", "device": {"name": "pp"}, "rear_port": {"id": 1, "name": "rear1"}, "rear_port_position": 2}`
	new21  = `{"id": 21, "name": "front21", "device": {"name": "pp"}, "rear_ports": [{"position": 1, "rear_port": 2, "rear_port_position": 1}]}`
	new22  = `{"id": 22, "name": "front22", "device": {"name": "pp"}, "rear_ports": [{"position": 1, "rear_port": 2, "rear_port_position": 2}]}`
	new31  = `{"id": 31, "name": "front31", "device": {"name": "pp"}, "rear_ports": [{"position": 1, "rear_port": 3, "rear_port_position": 1}]}`
	new41  = `{"id": 41, "name": "front41", "device": {"name": "pp"}, "rear_ports": [{"position": 1, "rear_port": 4, "rear_port_position": 1}]}`
	twofer = `{"id": 21, "name": "front21", "device": {"name": "pp"}, "rear_ports": [{"position": 1, "rear_port": 2, "rear_port_position": 1}, {"position": 2, "rear_port": 2, "rear_port_position": 2}]}`
	rear1  = `{"id": 1, "name": "rear1", "device": {"name": "pp"}, "positions": 2}`
	rear2  = `{"id": 2, "name": "rear2", "device": {"name": "pp"}, "positions": 2}`
	rear3  = `{"id": 3, "name": "rear3", "device": {"name": "pp"}, "positions": 1}`
	rear4  = `{"id": 4, "name": "rear4", "device": {"name": "pp"}, "positions": 1}`
)

// TestCircuits: cables are followed over panels and through breakouts where NetBox says
// which end belongs to which, once each, and where it does not, or a way ends, a note says so.
func TestCircuits(t *testing.T) {
	t.Parallel()
	fronts, rears := []string{old11, old12, new21, new22, new31, new41}, []string{rear1, rear2, rear3, rear4}
	trunk := "single-1c2p: rear 1 = rear 2"
	for name, c := range map[string]struct {
		cables, fronts, rears []string
		want                  string // "FROM TO", by |
		notes                 string // what each has, by |
	}{
		"two panels, of both schemas": {[]string{": gpu01 ib1 = front 11", trunk, ": leaf-1 Ethernet1 = front 21", ": gpu02 ib1 = front 12", ": front 22 = leaf-1 Ethernet2"}, fronts, rears,
			"gpu01/rail/1 r01/leaf-1/1|gpu02/rail/1 r01/leaf-1/2", ""},
		"four panels":          {[]string{": gpu01 ib1 = front 11", trunk, ": front 21 = front 31", ": rear 3 = rear 4", ": front 41 = leaf-1 Ethernet1"}, fronts, rears, "gpu01/rail/1 r01/leaf-1/1", ""},
		"one panel":            {[]string{": gpu01 ib1 = front 31", ": rear 3 = leaf-1 Ethernet1"}, fronts, rears, "gpu01/rail/1 r01/leaf-1/1", ""},
		"a loop":               {[]string{": gpu01 ib1 = front 11", trunk, ": front 21 = front 12", ": front 22 = front 11"}, fronts, rears, "", `cable #1 from "gpu01 ib1": the way comes back to front port "pp front11" of a panel`},
		"around":               {[]string{": gpu01 ib1 = front 31", ": rear 3 = rear 3"}, fronts, rears, "", `comes back to front port "pp front31"`},
		"no far cable":         {[]string{": gpu01 ib1 = front 11", trunk}, fronts, rears, "", `port "pp front21" of a panel has no cable`},
		"no trunk":             {[]string{": gpu01 ib1 = front 11"}, fronts, rears, "", `port "pp rear1" of a panel has no cable`},
		"no front port there":  {[]string{": gpu01 ib1 = front 12", trunk}, []string{old12, new21}, rears, "", `rear port "pp rear2" of a panel has no front port at position 2`},
		"unknown front port":   {[]string{": gpu01 ib1 = front 99"}, fronts, rears, "", `front port "pp front99" of a panel is not in`},
		"unknown rear port":    {[]string{": gpu01 ib1 = front 31"}, fronts, []string{rear1}, "", `the rear port of front port "pp front31"`},
		"two rear ports":       {[]string{": gpu01 ib1 = front 21"}, []string{twofer}, rears, "", `front port "pp front21" of a panel has 2 rear ports`},
		"which position":       {[]string{": gpu01 ib1 = rear 1"}, fronts, rears, "", `rear port "pp rear1" of a panel has 2 positions`},
		"which lane":           {[]string{": gpu01 ib1 = front 11", ": rear 1 = leaf-1 Ethernet1"}, fronts, rears, "", `"leaf-1 Ethernet1" is reached over one position|rear port "pp rear1" of a panel has 2 positions`},
		"a breakout":           {[]string{"breakout-1c2p-2c1p: leaf-1 Ethernet1 = gpu01 ib1, gpu02 ib1"}, nil, nil, "gpu01/rail/1 r01/leaf-1/1/1|gpu02/rail/1 r01/leaf-1/1/2", ""},
		"a breakout, half":     {[]string{"breakout-1c2p-2c1p: leaf-1 Ethernet1 = gpu01 ib1, other eth0"}, nil, nil, "gpu01/rail/1 r01/leaf-1/1/1", ""},
		"a breakout to panels": {[]string{"breakout-1c2p-2c1p: leaf-1 Ethernet1 = front 31, front 41", ": rear 4 = gpu01 ib1", ": rear 3 = gpu02 ib1"}, fronts, rears, "gpu01/rail/1 r01/leaf-1/1/2|gpu02/rail/1 r01/leaf-1/1/1", ""},
		"a panel splits":       {[]string{"breakout-1c2p-2c1p: rear 1 = gpu01 ib1, gpu02 ib1", ": front 11 = leaf-1 Ethernet1", ": front 12 = leaf-1 Ethernet2"}, fronts, rears, "gpu01/rail/1 r01/leaf-1/1|gpu02/rail/1 r01/leaf-1/2", ""},
		"too few ends":         {[]string{"breakout-1c4p-4c1p: leaf-1 Ethernet1 = gpu01 ib1, gpu02 ib1"}, nil, nil, "", `cable #1 joins "leaf-1 Ethernet1" with "gpu01 ib1", "gpu02 ib1"`},
		"straight":             {[]string{"trunk-2c1p: leaf-1 Ethernet1, leaf-1 Ethernet2 = gpu01 ib1, gpu01 ib2"}, nil, nil, "gpu01/rail/1 r01/leaf-1/1|gpu01/rail/2 r01/leaf-1/2", ""},
		"a shuffle":            {[]string{"trunk-2c4p-shuffle: leaf-1 Ethernet1, leaf-1 Ethernet2 = gpu01 ib1, gpu01 ib2"}, nil, nil, "", "cable #1 joins"},
		"a shuffle of one":     {[]string{"trunk-2c4p-shuffle: leaf-1 Ethernet1 = gpu01 ib1"}, nil, nil, "", "cable #1 joins"},
		"without a profile":    {[]string{": leaf-1 Ethernet1, leaf-1 Ethernet2 = gpu01 ib1, gpu01 ib2"}, nil, nil, "", "cable #1 joins"},
	} {
		r := Convert(joined(t, c.cables, c.fronts, c.rears), whole(t))
		var got []string
		for _, x := range r.Site.Cables {
			got = append(got, x.From+" "+x.To)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: cables %q", name, got)
		}
		notes := strings.Split(c.notes, "|")
		if c.notes == "" {
			notes = nil
		}
		if len(r.Notes) != len(notes) {
			t.Errorf("%s: notes %q", name, r.Notes)
			continue
		}
		for i, n := range notes {
			if !strings.Contains(r.Notes[i], n) {
				t.Errorf("%s: note %q has no %q", name, r.Notes[i], n)
			}
		}
	}
}
