// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"
)

// large is the report of a site of many nodes in racks of four, with eight rails and some
// bad nodes: every 97th has a slow rail, every 211th is on hold.
func large(nodes int) Input {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := Input{Site: "large", Run: "r-1", At: at, Versions: []Version{{"ironrail", "0.1.0"}}}
	burn := Test{Title: "Burn-in", Rank: 1, Step: "all/validate.burn", At: at}
	pair := Test{Title: "RDMA", Rank: 2, Step: "all/validate.pair", At: at}
	name := func(i int) string { return fmt.Sprintf("r%03d-u%02d", i/4+1, 1+9*(i%4)) }
	for i := range nodes {
		n := Node{Name: name(i), Status: Accepted, AcceptedAt: at, Serial: fmt.Sprintf("S%05d", i), Kernel: "6.1.0-56-amd64"}
		if i%4 == 0 {
			in.Racks = append(in.Racks, Rack{Name: fmt.Sprintf("r%03d", i/4+1), Units: 42})
		}
		r := &in.Racks[i/4]
		r.Places = append(r.Places, Place{Name: n.Name, Kind: NodePlace, Unit: 1 + 9*(i%4), Height: 8})
		slow := i%97 == 13
		if slow {
			n.Status = Quarantined
			n.Findings = []Finding{{Part: n.Name + " rail 3", At: at, Step: pair.Step, Cause: fmt.Sprintf("RDMA writes over %s rail 3 are slow", n.Name), Evidence: []string{"it carries 21 GB/s, and the limit is 43 GB/s"}, Action: "Check the cable.",
				Suspects: []Suspect{{Kind: "node", Name: n.Name, Part: "rail 3", Place: []string{n.Name + " is in a rack"}, Parts: []Part{{What: "NIC rail/3", Model: "ConnectX-7", Serial: "MAC 02:00:00:00:00:03"}}}}}}
		}
		if i%211 == 7 {
			n.Status, n.Reason = Held, "a technician is at work"
		}
		burn.Measurements = append(burn.Measurements, Measurement{Check: "burn.temperature", Nodes: []string{n.Name}, Measured: float64(58 + (7*i+i/50)%17), Unit: "°C", Limit: "<= 82 °C", Verdict: Pass})
		for rail := range 8 {
			for _, to := range []int{(i + 1) % nodes, (i + nodes/2) % nodes} {
				m := Measurement{Check: transferCheck, Nodes: []string{n.Name, name(to)}, Part: fmt.Sprintf("rail %d", rail), Measured: 48e9 + float64((i*31+rail*17)%40)*4e7, Unit: "B/s", Limit: ">= 43.0GB/s (90% of the median)", Verdict: Pass}
				if rail == 3 && (slow || to%97 == 13) {
					m.Measured, m.Verdict, m.Why = 21e9, Fail, "below the limit"
				}
				pair.Measurements = append(pair.Measurements, m)
			}
		}
		burn.Members, pair.Members = append(burn.Members, n.Name), append(pair.Members, n.Name)
		in.Nodes = append(in.Nodes, n)
	}
	in.Tests = []Test{burn, pair}
	return in
}
