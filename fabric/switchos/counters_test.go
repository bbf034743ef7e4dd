// SPDX-License-Identifier: Apache-2.0

package switchos

import (
	"testing"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/inventory"
)

// TestAddCounters: the example of SONiC's command reference, with a port that is none of
// the site's, one that is down, and columns of a newer version.
func TestAddCounters(t *testing.T) {
	t.Parallel()
	const text = `      IFACE    STATE            RX_OK        RX_BPS    RX_UTIL    RX_ERR    RX_DRP    RX_OVR            TX_OK        TX_BPS    TX_UTIL    TX_ERR    TX_DRP    TX_OVR    TRIM
-----------  -------  ---------------  ------------  ---------  --------  --------  --------  ---------------  ------------  ---------  --------  --------  --------  ------
  Ethernet0        U  471,729,839,997  653.87 MB/s     12.77%        17    18,682         0  409,682,385,925  556.84 MB/s     10.88%         3         0         0       0
  Ethernet8        D                0      0.00 B/s      0.00%         0         0         0                0      0.00 B/s      0.00%         0         0         0     N/A
 Ethernet16        U              N/A           N/A        N/A       N/A       N/A       N/A              N/A           N/A        N/A       N/A       N/A       N/A     N/A
 Ethernet99        U              512      0.00 B/s      0.00%         1         0         0                7      0.00 B/s      0.00%         0         0         0       0
`
	sw := &inventory.Switch{Name: "net/leaf-1"}
	s := &sonic.Switch{Switch: sw}
	for i, name := range []string{"Ethernet0", "Ethernet8", "Ethernet16", "Ethernet24"} {
		s.Ports = append(s.Ports, sonic.Port{Name: name, End: inventory.CableEnd{Switch: sw, Port: i + 1}})
	}
	got := map[fabric.SwitchPort]fabric.SwitchCounters{}
	addCounters(got, s, text)
	if len(got) != 3 || got["net/leaf-1/1"] != (fabric.SwitchCounters{Sent: 409682385925, Received: 471729839997, Errors: 17}) || got["net/leaf-1/2"] != (fabric.SwitchCounters{Down: true}) || got["net/leaf-1/3"] != (fabric.SwitchCounters{}) {
		t.Errorf("%+v", got)
	}
}

// FuzzAddCounters: nothing that a switch prints ends the program.
func FuzzAddCounters(f *testing.F) {
	f.Add("IFACE STATE RX_OK TX_OK RX_ERR\nEthernet0 U 1,000 2 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		sw := &inventory.Switch{Name: "leaf"}
		got := map[fabric.SwitchPort]fabric.SwitchCounters{}
		addCounters(got, &sonic.Switch{Switch: sw, Ports: []sonic.Port{{Name: "Ethernet0", End: inventory.CableEnd{Switch: sw, Port: 1}}}}, text)
		if len(got) > 1 {
			t.Errorf("%d ports of one", len(got))
		}
	})
}
