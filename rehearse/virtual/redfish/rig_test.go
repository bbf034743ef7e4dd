// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// quick are durations for tests over real sockets.
var quick = chassis.Timing{PowerOn: 20 * time.Millisecond, PowerOff: 20 * time.Millisecond, POST: time.Millisecond,
	GracefulOff: 20 * time.Millisecond, BMCReset: 30 * time.Millisecond}

const user, password = "root", "correct-horse-1"

// board applies settings as POST does and then idles in the OS.
type board struct{ c *chassis.Chassis }

func (b board) Run(ctx context.Context, _ bool) chassis.Exit {
	b.c.ApplyBIOS()
	b.c.TakeBoot()
	b.c.SetPhase("OS")
	<-ctx.Done()
	return chassis.Halt
}

// config is a chassis as a personality's factory ships it.
func config(p Personality, t chassis.Timing) chassis.Config {
	return p.Fit(chassis.Config{Node: "r1n01", Serial: "SN0001", BoardSerial: "BD0001", ChassisSerial: "CH0001",
		UUID: "4c4c4544-0033-4710-8032-c7c04f475931", Timing: t, Seed: 7,
		Accounts: []chassis.Account{{ID: p.AdminID, Username: user, Password: password, Role: "Administrator", Enabled: true}}})
}

// hardware is a small inventory.
func hardware() *Hardware {
	h := &Hardware{
		Processors: []Processor{{Model: "Xeon 8480C", Manufacturer: "Intel", Cores: 56, Threads: 112}, {Model: "H100 SXM5", Manufacturer: "NVIDIA", GPU: true, Serial: "165"}},
		DIMMs:      []DIMM{{Slot: "DIMM A1", MiB: 65536, MTs: 4800, Manufacturer: "Hynix", Serial: "0A"}},
		PCIe:       []PCIe{{ID: "0000:18:00.0", Name: "ConnectX-7", Manufacturer: "Mellanox", Lanes: 16}},
		Drives:     []Drive{{ID: "nvme0n1", Model: "PM1743", Serial: "S1", Bytes: 3840 << 30, SSD: true}},
	}
	for i := range byte(2) {
		h.NICs = append(h.NICs, NIC{MAC: addr.MAC{0xb8, 0xce, 0xf6, 0, 0, i}, Mbps: 400000})
	}
	return h
}

// bmc is a service on a loopback port.
type bmc struct {
	url    string
	c      *chassis.Chassis
	client *http.Client
}

// start serves a personality on a loopback port until the test ends.
func start(t testing.TB, p Personality, o Options) *bmc {
	t.Helper()
	c := chassis.New(config(p, quick))
	c.SetBoard(board{c})
	if o.Hardware == nil {
		o.Hardware = hardware()
	}
	if o.Update == 0 {
		o.Update = 20 * time.Millisecond
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Address = netip.MustParseAddr("127.0.0.1")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- c.Run(ctx) }()
	go func() { done <- Serve(ctx, ln, c, p, o) }()
	b := &bmc{url: "https://" + ln.Addr().String(), c: c, client: &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}}
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("serve: %v", err)
			}
		}
	})
	return b
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    []byte
}

// id is the first message id of an error.
func (a answer) id() string {
	e, _ := a.body["error"].(map[string]any)
	info, _ := e["@Message.ExtendedInfo"].([]any)
	if len(info) == 0 {
		return ""
	}
	m, _ := info[0].(map[string]any)
	id, _ := m["MessageId"].(string)
	return id
}

// do sends a request with basic authentication and headers as "Name: value".
func (b *bmc) do(t testing.TB, method, path, body string, headers ...string) answer {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, b.url+path, r)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "X-Auth-Token" || name == "Anonymous" {
			req.Header.Del("Authorization")
		}
		req.Header.Set(name, value)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, raw: raw}
	if len(raw) > 0 && bytes.HasPrefix(raw, []byte("{")) {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, raw)
		}
	}
	return a
}

// eventually waits until a state is reached on the wall clock; it is for tests
// over real sockets, which cannot run on virtual time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not reached: %s", what)
		}
	}
}

// each runs a test for every personality.
func each(t *testing.T, test func(*testing.T, Personality)) {
	t.Helper()
	for _, p := range Personalities() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

func (b *bmc) system(p Personality) string { return fmt.Sprintf("%s/Systems/%s", root, p.System) }
